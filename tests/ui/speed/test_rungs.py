"""core.ui.speed.rungs: what a rung changes, and nothing else."""

from functools import reduce

import pytest

from core.speed import ladder
from core.speed.ladder import RUNGS, Kept
from core.ui.source import body, changes
from core.ui.speed.rungs import written_in

NAMES = [rung.name for rung in RUNGS]


def difference(earlier: str, rung: str, *without: str) -> str:
    """What is shown between two rungs, where all before are kept but these."""
    before = NAMES[: NAMES.index(rung)]
    names = (name for name in before if name not in without)
    kept = reduce(ladder.with_change, names, Kept())
    texts = [body(f"core.speed.rungs:{name}") for name in (earlier, rung)]
    return changes(*(written_in(text, kept) for text in texts))


@pytest.mark.parametrize("rung", NAMES[1:])
def test_a_difference_says_nothing_of_what_is_kept(rung):
    """The names of what earlier rungs have brought stand in none of its lines."""
    earlier = NAMES[NAMES.index(rung) - 1]
    assert "kept." not in difference(earlier, rung)


def test_autocast_changes_what_it_says():
    """Neither the batch nor the learning rate, which are as they were before."""
    lines = difference("larger_batch", "half_precision").splitlines()
    changed = [line for line in lines if line[0] in "+-"]
    assert changed
    assert not [line for line in changed if "split" in line or "lr=" in line]


def test_a_change_that_was_taken_back_is_in_no_difference():
    """Without channels last the compiled rung does not mention it."""
    shown = difference("half_precision", "compiled", "channels_last")
    assert "channels_last" not in shown
    assert "torch.compile" in shown
