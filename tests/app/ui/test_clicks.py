from types import SimpleNamespace

from core.ui import clicks


class State(dict):
    __getattr__, __setattr__ = dict.__getitem__, dict.__setitem__


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
