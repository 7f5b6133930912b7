"""A step with moves forgotten: which fail, and where."""

from itertools import chain, combinations

import pytest

from core.devices import accelerator
from core.move import forgotten
from core.move.results import Forgotten
from core.ui.source import source

MOVES = ("model", "inputs", "labels", "loss")
FORWARD, LOSS = "outputs = model(inputs)", "loss = criterion(outputs, labels)"
HERE = accelerator()
DEVICE = HERE.type if HERE else "meta"


@pytest.mark.parametrize(
    ("forgotten_move", "line"),
    [("model", FORWARD), ("inputs", FORWARD), ("labels", LOSS), ("loss", LOSS)],
)
def test_a_forgotten_move_fails_where_two_devices_meet(
    forgotten_move: str, line: str
) -> None:
    """The line that is pointed at is the first that has tensors of both."""
    moved = [move for move in MOVES if move != forgotten_move]
    found = forgotten.attempt(DEVICE, moved)
    assert "device" in found.error
    assert found.line is not None
    shown = source("core.move.forgotten:step").splitlines()
    assert shown[found.line - 1].strip() == line


def test_all_or_none_work_and_nothing_between() -> None:
    """Where all are moved, or all stay, only one device is there."""
    some = chain.from_iterable(combinations(MOVES, n) for n in range(1, 4))
    assert all(forgotten.attempt(DEVICE, moved).error for moved in some)
    for moved in ((), MOVES):
        assert forgotten.attempt(DEVICE, moved) == Forgotten()
        assert forgotten.attempt("cpu", moved) == Forgotten()
