import pytest

from core.serving import full_database
from core.serving.full_database import limit, look
from core.store.store import Store
from tests.app.store.made_up import finished


@pytest.fixture
def store(tmp_path) -> Store:
    store = Store(f"sqlite:///{tmp_path / 'store.sqlite'}")
    yield store
    store.close()


@pytest.mark.parametrize("is_own", [True, False])
def test_only_a_server_for_others_deletes_what_has_no_room(store, monkeypatch, is_own):
    monkeypatch.setattr(full_database, "is_for_this_machine", lambda: is_own)
    finished(store, "a")
    store.writer.flush()
    look(store, 1000)
    assert len(store.runs.find()) == 1
    monkeypatch.setattr(full_database, "MEGABYTE", 1)
    look(store, 1)
    assert len(store.runs.find()) == is_own


def test_half_of_the_disk_stays_free_of_the_database(store, monkeypatch):
    monkeypatch.setattr(store.database, "room_bytes", lambda: 3e9)
    assert limit(store, 10_000) == 1.5e9
    assert limit(store, 1_000) == 1e9
