"""core.store.store: what a server has where no database can be used."""

from core.store.store import Store
from tests.store.made_up import finished


def test_a_passing_store_remembers_until_it_is_closed():
    """It works as any other, says why it does not last, and leaves nothing behind."""
    store = Store.passing("The disk is full.")
    finished(store, "run")
    assert store.writer.flush()
    assert store.runs.get("run").value
    assert store.problem.endswith("forgotten when the app stops. The disk is full.")
    folder = store.database.path.parent
    store.close()
    assert not folder.exists()
