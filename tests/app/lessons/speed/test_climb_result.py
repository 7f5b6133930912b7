from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.lessons.speed import climb_result
from core.lessons.speed.climb_result import (
    GUESSES,
    RUNGS,
    Kept,
    Result,
    Roofline,
    doubt,
    drifted,
    gain_of,
    is_kept,
    verdict,
)
from core.measure.speedup import CLOSE, agree
from tests.app.samples import CLIMBED
from tests.figures import figures

FIRST = Result("textbook", "", (4.0, 4.0, 4.0), (), 6400, 100, correct=860, total=1000)
RATIOS = st.floats(1.5, 100.0)


def after(seconds, base_seconds=(4.0, 4.0, 4.0), rung="two_workers", **more):
    epochs = {"seconds": seconds, "base_seconds": base_seconds}
    return replace(FIRST, rung=rung, base="textbook", **epochs, **more)


def test_a_gain_is_the_ratio_of_samples_in_epochs_timed_in_turn():
    gain = gain_of(after((1.0, 2.0, 2.0), (4.0, 4.0, 8.0)), [FIRST])
    assert (gain.ratio, *gain.interval) == pytest.approx((2.0, 2.0, 4.0))
    shorter = after((3.6, 3.6, 3.6), samples=5760)
    assert gain_of(shorter, [FIRST]).ratio == pytest.approx(1)


@pytest.mark.parametrize(
    ("seconds", "guesses"),
    [
        ((8.0, 8.0, 8.0), GUESSES[:1]),
        ((4.2, 4.2, 4.2), GUESSES[1:2]),  # less than a tenth
        ((4.2, 2.5, 4.1), GUESSES[1:3]),
        ((2.5, 2.5, 2.5), GUESSES[2:3]),
        ((1.9, 1.9, 1.9), GUESSES[3:]),
    ],
)
def test_each_outcome_is_one_of_the_guesses_or_leaves_some_open(seconds, guesses):
    assert climb_result.answers(gain_of(after(seconds), [FIRST])) == guesses


def test_a_change_stays_only_where_it_is_clearly_faster_and_learns_as_much():
    assert is_kept(after((2.0, 2.0, 2.0)), [FIRST])
    assert not is_kept(after((4.0, 3.9, 4.1)), [FIRST])
    assert not is_kept(after((2.0, 2.0, 2.0), correct=800), [FIRST])
    assert is_kept(after((9.0, 9.0, 9.0), rung="fused"), [FIRST])  # others need it


def test_the_next_rung_builds_on_the_last_that_was_kept():
    results = [
        replace(FIRST, kept=True),
        after((2.0,), kept=True),
        after((9.0,), rung="four_workers", kept=False),
    ]
    assert climb_result.base(results) == "two_workers"
    assert climb_result.kept_changes(results) == Kept(num_workers=2)
    assert climb_result.base([]) == ""


@pytest.mark.parametrize(
    ("backend", "model", "left_out"),
    [
        ("CPU", "ann", {"pinned", "on_the_device", "channels_last", "graphed"}),
        ("CPU", "cnn", {"pinned", "on_the_device", "whole_step", "graphed"}),
        ("CUDA", "cnn", {"whole_step"}),
        ("ROCm", "ann", {"channels_last"}),
        ("MPS", "cnn", {"pinned", "whole_step", "graphed"}),
    ],
)
def test_what_does_not_apply_says_why(backend, model, left_out):
    why = {rung.name: rung.obstacle(backend, model) for rung in RUNGS}
    assert {name for name, text in why.items() if text} == left_out
    assert all(text.endswith(".") for text in why.values() if text)


def test_a_machine_that_changed_its_speed_is_noticed():
    """By the base's own epochs: 4 s when it was measured itself."""
    for steady in (after((1.0,)), after((1.0,), (4.8,)), FIRST):
        assert not drifted(steady, [FIRST])
    assert drifted(after((1.0,), (2.0,)), [FIRST])
    assert drifted(after((1.0,), (8.0,)), [FIRST])


def test_the_limit_is_the_longer_of_arithmetic_and_memory():
    """As in the roofline model; the fastest reading counts."""
    rates = {"float32": (1e6, 2e6, 3e6)}
    limit = Roofline(1000.0, 10.0, 50.0, rates, (1e3, 1e3), (2e3, 2e3))
    assert limit.arithmetic_seconds(100) == pytest.approx(1 / 30)
    assert limit.memory_seconds(100, 4) == 1.0 + 0.1
    assert limit.seconds(100, 4) == 1.1
    quick = replace(limit, bytes_per_second=(1e9,))
    assert quick.seconds(100, 1) == pytest.approx(1 / 30)


# What a climb says


def with_ratio(*ratios: float):
    """The climb of the samples, whose gains multiply to 40 / 3, with other pairs."""
    seconds = tuple(0.3 * ratio for ratio in ratios)
    return replace(CLIMBED, direct=replace(CLIMBED.direct, textbook_seconds=seconds))


@given(st.lists(RATIOS, min_size=3, max_size=3))
def test_the_headline_is_the_direct_ratio_and_nothing_else(ratios):
    """Whatever the gains of the rungs multiply to; where that is far off, it's said."""
    climbed = with_ratio(*ratios)
    least, true, most = sorted(ratios)
    assert climbed.speedup.ratio == pytest.approx(true)
    assert climbed.speedup.interval == pytest.approx((least, most))
    text, (ratio, low, high) = verdict(climbed), climbed.speedup.of_winner.texts
    if not climbed.speedup.steady:  # no figure of one pair stands for all of them
        assert climbed.speedup.note in text
        assert climbed.speedup.note or {low, high} <= {*figures(text)}
        assert not doubt(climbed)
        return
    assert {ratio, low, high} <= {*figures(text)}
    assert bool(doubt(climbed)) != agree((40 / 3, climbed.speedup.ratio), CLOSE)
    assert doubt(climbed) in text


def test_the_bars_have_the_seconds_that_the_headline_is_about():
    """Those of the textbook loop's rung were measured at another moment."""
    climbed = with_ratio(6.6, 6.7, 6.8)
    results = climb_result.measured(climbed.newest_results)
    first, best = results["textbook"], results[climbed.direct.rung]
    ratio = best.samples_per_second / first.samples_per_second
    assert climbed.speedup.ratio == pytest.approx(ratio)
    before = climb_result.measured(climbed.results)[best.rung]
    assert gain_of(best, climbed.newest_results) == gain_of(before, climbed.results)


def test_the_sentence_names_both_numbers_and_which_to_trust():
    assert figures(doubt(with_ratio(6.6, 6.7, 6.8))) == ["13", "6.7"]


def test_the_limit_is_that_of_the_same_moments():
    """A machine that has become slower meanwhile has a slower limit as well."""
    assert "float32" in verdict(CLIMBED)
    slow = replace(CLIMBED.direct.limits[0], flops_per_second={"float32": (5e10, 5e10)})
    direct = replace(CLIMBED.direct, seconds=(0.6,) * 3, limits=(slow,) * 3)
    for climbed in (CLIMBED, replace(CLIMBED, direct=direct)):
        assert figures(verdict(climbed))[-1] == "5.0"


def test_a_climb_without_a_rung_says_so():
    empty = replace(CLIMBED, results=(), direct=None)
    assert figures(verdict(empty)) == []
    assert empty.rows() == []


def test_the_best_rung_is_the_one_that_the_gains_lead_to():
    quiet = {"seconds": (0.1,) * 3, "base_seconds": (0.1,) * 3}
    lucky = [
        replace(result, **quiet if result.rung == "no_waiting" else {})
        for result in CLIMBED.results
    ]
    for results in (CLIMBED.results, lucky):
        assert climb_result.best(results).rung == "half_precision"
    assert climb_result.best(()) is None


def test_the_largest_gain_is_the_surest_of_one_change_over_its_own_base():
    results = [
        FIRST,
        after((2.0, 2.0, 2.0)),
        after((1.6, 1.6, 1.6), (2.0, 2.0, 2.0), "four_workers"),  # the fastest loop
        after((0.1, 9.0, 0.1), rung="fused"),  # nobody can tell
    ]
    said = climb_result.largest_gain(results)
    assert climb_result.BY_NAME["two_workers"].title in said
    assert figures(said) == ["2.0"]
    assert climb_result.largest_gain([FIRST, after((4.0, 4.1, 3.9))]) == ""


def test_the_rest_of_a_climb_is_known_after_the_first_rung():
    climb = replace(CLIMBED.climb, epochs=3)
    left = climb_result.seconds_left
    assert left([replace(FIRST, kept=False)], climb, "CPU") is None
    todo = [r for r in RUNGS[1:] if not r.obstacle("CPU", climb.model)]
    first = replace(FIRST, kept=True)
    # Each rung alternates with the last, and at the end the best one with the first.
    assert left([first], climb, "CPU") == 4.0 * 3 * 2 * (len(todo) + 1)
    faster = after((2.0, 2.0, 2.0), kept=True, rung=RUNGS[1].name)
    rest = left([first, faster], climb, "CPU")
    assert rest == 2.0 * 3 * (2 * (len(todo) - 1) + 1) + 4.0 * 3
    skipped = replace(FIRST, rung=RUNGS[1].name, seconds=(), message="why")
    assert left([first, skipped], climb, "CPU") > rest
    done = [first, *(replace(faster, rung=rung.name) for rung in RUNGS[1:])]
    assert left(done, climb, "CPU") == 3 * (2.0 + 4.0)
