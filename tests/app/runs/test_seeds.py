from types import SimpleNamespace

import pytest

from core.runs import seeds
from tests.app.store.made_up import summary


@pytest.mark.parametrize(
    ("in_class", "hidden", "told"),
    [(True, False, "class"), (True, True, "own"), (False, False, "own")],
)
def test_seeds_are_those_of_the_class_or_else_ones_own(
    monkeypatch, in_class, hidden, told
):
    asked = []
    store = SimpleNamespace(
        runs=SimpleNamespace(find=lambda *_, **equal: asked.append(equal) or [])
    )
    board = SimpleNamespace(id="a class") if in_class else None
    monkeypatch.setattr(seeds, "visitor", lambda: "me")
    monkeypatch.setattr(
        seeds, "room", lambda: SimpleNamespace(board_for=lambda _: board)
    )
    for module in (seeds, seeds.runs):
        monkeypatch.setattr(module, "store", lambda: store)
    monkeypatch.setattr(seeds.runs, "are_hidden", lambda: hidden)
    seeds.known("sprites")
    (equal,) = asked
    assert equal["task"] == "sprites"
    assert ("class" if "class_id" in equal else "own") == told


def test_the_setting_with_the_most_seeds_comes_first():
    found = [
        summary(task="sprites", accuracy=0.8 + n / 100, seed=n, batch_size=size)
        for size, count in ((32, 2), (64, 3), (128, 5))
        for n in range(count)
    ]
    first, second = seeds.spreads(found + found).values()
    assert (first.seeds, first.points, second.seeds) == (5, "4.00", 3)
    assert seeds.setting(found[-1]) == next(iter(seeds.spreads(found)))
