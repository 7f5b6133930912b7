"""core.speed.headline: what a climb says, and when it doubts its rungs."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.measure.units import times
from core.speed import headline
from tests.samples import CLIMBED

RATIOS = st.floats(1.5, 100.0)
EMPTY = replace(CLIMBED, results=(), direct=None)


def with_ratio(*ratios: float):
    """The climb of the samples, whose gains multiply to 40 / 3, with other pairs."""
    seconds = tuple(0.3 * ratio for ratio in ratios)
    direct = replace(CLIMBED.direct, textbook_seconds=seconds)
    return replace(CLIMBED, direct=direct)


@given(st.lists(RATIOS, min_size=3, max_size=3))
def test_the_headline_is_the_direct_ratio_and_nothing_else(ratios):
    """Whatever the gains of the rungs multiply to; where that is far off, it's said."""
    done = with_ratio(*ratios)
    least, true, most = sorted(ratios)
    assert done.speedup.median == pytest.approx(true)
    assert done.speedup.interval == pytest.approx((least, most))
    said = headline.verdict(done)
    if not done.speedup.steady:  # no figure of one pair stands for all of them
        assert f", {times(least)} to {times(most)} times as fast" in said
        assert " instead of " not in said
        assert not headline.doubt(done)
        return
    assert f"{times(done.speedup.median)} times as fast as the textbook loop" in said
    assert f"{times(least)} to {times(most)} over 3 pairs" in said
    apart = abs(40 / 3 / done.speedup.median - 1)
    assert bool(headline.doubt(done)) == (apart > 0.1)
    assert headline.doubt(done) in said


def test_the_sentence_names_both_numbers_and_which_to_trust():
    """As a neighbour brings it about: 26.9 multiplied, 12.9 measured."""
    said = headline.doubt(with_ratio(6.6, 6.7, 6.8))
    assert "multiply" not in said
    assert "would make that 13 times" in said
    assert "trust the 6.7, which was measured directly" in said


def test_a_best_rung_that_hardly_wins_is_too_close_to_call():
    """No number is put in front where the pairs don't agree who is faster."""
    said = headline.verdict(with_ratio(0.98, 1.04, 1.1))
    assert "too close to the textbook loop to call**: 0.98 to 1.10" in said
    assert "1.04 times" not in said


def test_the_limit_is_that_of_the_same_moments():
    """A machine that has become slower meanwhile has a slower limit as well."""
    assert "measured limit for float32, which is arithmetic" in headline.verdict(
        CLIMBED
    )
    slow = replace(CLIMBED.direct.limits[0], flops_per_second={"float32": (5e10, 5e10)})
    direct = replace(CLIMBED.direct, seconds=(0.6,) * 3, limits=(slow,) * 3)
    busy = replace(CLIMBED, direct=direct)
    times = "the rung takes 5.0 times that"
    assert times in headline.verdict(CLIMBED)
    assert times in headline.verdict(busy)


def test_a_limit_that_changed_meanwhile_is_not_held_against_a_rung():
    """Else it would seem to be faster than the machine can be."""
    slow = replace(CLIMBED.direct.limits[0], flops_per_second={"float32": (2e10, 2e10)})
    limits = (CLIMBED.direct.limits[0], slow, slow)
    done = replace(CLIMBED, direct=replace(CLIMBED.direct, limits=limits))
    assert "times that" not in headline.verdict(done)
    assert "its speed changed too much" in headline.verdict(done)


def test_a_climb_without_a_rung_says_so():
    """And has nothing to compare."""
    assert headline.verdict(EMPTY).startswith("No rung could be measured")
    assert EMPTY.rows() == []
    with pytest.raises(ValueError, match="best rung"):
        replace(CLIMBED, results=())


def test_the_best_rung_is_the_one_that_the_gains_lead_to():
    """Not the one whose epochs fell into a quiet moment."""
    best = headline.best(CLIMBED.results)
    assert best.rung == "half_precision"
    lucky = tuple(
        replace(each, seconds=(0.1,) * 3, base_seconds=(0.1,) * 3)
        if each.rung == "no_waiting"
        else each
        for each in CLIMBED.results
    )
    assert headline.best(lucky).rung == "half_precision"
    assert headline.best(()) is None
