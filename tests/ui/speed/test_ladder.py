"""core.ui.speed.ladder: which rungs the waterfall has."""

from core.ui.speed.ladder import kept_in_a_row
from tests.samples import CLIMBED

KEPT = ["textbook", "decoded_once", "no_waiting", "fused", "larger_batch"]


def test_the_waterfall_ends_at_the_first_rung_that_is_hidden():
    """It has those that were kept, and nothing tells of what is to be guessed."""
    every = CLIMBED.results
    names = [each.rung for each in kept_in_a_row(every, every)]
    assert names == [*KEPT, "half_precision"]
    hidden = [each for each in every if each.rung != "fused"]
    assert [each.rung for each in kept_in_a_row(hidden, every)] == KEPT[:3]
