"""core.ui.train.live: what a page shows of a run while it goes on."""

from types import SimpleNamespace

from core.ui.train import live


def test_what_was_ticked_before_does_not_hide_a_newer_run():
    """Boxes belong to the runs of a table: with another one all are ticked."""
    runs = [SimpleNamespace(id=each) for each in "abc"]
    tables = (runs[:1], runs[:2], runs, [*runs[:1], runs[2]])
    assert len({live.legend_key(each) for each in tables}) == len(tables)
