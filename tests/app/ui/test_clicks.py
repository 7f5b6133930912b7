from types import SimpleNamespace

from core.ui import clicks


class State(dict):
    __getattr__, __setattr__ = dict.__getitem__, dict.__setitem__


def test_a_click_that_had_to_wait_for_what_the_first_began_is_known(monkeypatch):
    now = SimpleNamespace(seconds=0.0)
    clock = SimpleNamespace(monotonic=lambda: now.seconds)
    monkeypatch.setattr(clicks, "time", clock)
    monkeypatch.setattr(clicks, "st", SimpleNamespace(session_state=State()))
    assert not clicks.waited_for("a form")
    with clicks.taken("a form"):
        now.seconds = 8.0  # so long it took
    now.seconds += clicks.AT_ONCE_SECONDS / 2
    assert clicks.waited_for("a form")
    assert not clicks.waited_for("another form")
    now.seconds += clicks.AT_ONCE_SECONDS
    assert not clicks.waited_for("a form")


def test_of_clicks_in_quick_succession_only_the_first_counts(monkeypatch):
    seconds = iter((0.0, 0.2, 0.7, 1.4, 3.0))
    monkeypatch.setattr(
        clicks, "time", SimpleNamespace(monotonic=lambda: next(seconds))
    )
    monkeypatch.setattr(clicks, "st", SimpleNamespace(session_state=State()))
    done: list[int] = []
    for number in range(5):
        clicks.once(done.append, number)
    assert done == [0, 3, 4]
