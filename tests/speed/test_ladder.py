"""core.speed.ladder: the rungs and what is made of their figures."""

from dataclasses import replace

import pytest

from core.speed import ladder
from core.speed.ladder import GUESSES, RUNGS, Climb, Kept, Result
from core.speed.results import Roofline

FIRST = Result("textbook", "", (4.0, 4.0, 4.0), (), 6400, 100, correct=860, total=1000)


def after(seconds, base_seconds=(4.0, 4.0, 4.0), rung="two_workers", base="textbook"):
    return replace(
        FIRST, rung=rung, base=base, seconds=seconds, base_seconds=base_seconds
    )


def test_a_gain_is_the_ratio_of_epochs_timed_in_turn():
    """Its median and extremes are those of the pairs, whatever the base took before."""
    found = ladder.gain(after((1.0, 2.0, 2.0), (4.0, 4.0, 8.0)), FIRST)
    assert (found.median, *found.interval) == (4.0, 2.0, 4.0)
    assert not found.same
    assert not found.disputed


def test_pairs_that_do_not_agree_are_told():
    """A hiccup of the machine does not decide, but it is not hidden either."""
    found = ladder.gain(after((2.0, 9.0, 2.0)), FIRST)
    assert found.median == 2
    assert found.disputed


def test_a_gain_counts_samples():
    """An epoch that leaves a tenth of the images out is not faster for that."""
    shorter = replace(after((3.6, 3.6, 3.6)), samples=5760)
    assert ladder.gain(shorter, FIRST).median == pytest.approx(1)


@pytest.mark.parametrize(
    ("seconds", "guess"),
    [
        ((8.0, 8.0, 8.0), 0),
        ((4.2, 4.2, 4.2), 1),  # less than a tenth
        ((4.2, 2.0, 4.1), 1),  # the median counts
        ((2.5, 2.5, 2.5), 2),
        ((1.9, 1.9, 1.9), 3),
    ],
)
def test_each_outcome_is_one_of_the_guesses(seconds, guess):
    """Slower, about the same, up to two times as fast, more."""
    assert ladder.answer(ladder.gain(after(seconds), FIRST)) == GUESSES[guess]


def test_a_change_stays_only_where_it_is_clearly_faster():
    """One that is not is taken back; so is one that learns less."""
    assert ladder.is_kept(after((2.0, 2.0, 2.0)), [FIRST])
    assert not ladder.is_kept(after((4.0, 3.9, 4.1)), [FIRST])
    assert not ladder.is_kept(replace(after((2.0, 2.0, 2.0)), correct=800), [FIRST])


@pytest.mark.parametrize("rung", ladder.NEEDED)
def test_what_the_rungs_above_need_stays(rung):
    """Even where it is slower."""
    assert ladder.is_kept(after((9.0, 9.0, 9.0), rung=rung), [FIRST])


def test_the_next_rung_builds_on_the_last_that_was_kept():
    """And on every change that was kept before."""
    results = [
        replace(FIRST, kept=True),
        replace(after((2.0,)), kept=True),
        replace(after((9.0,), rung="four_workers"), kept=False),
    ]
    assert ladder.base(results) == "two_workers"
    assert ladder.kept(results) == Kept(num_workers=2)
    assert ladder.base([]) == ""


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
    """A sentence for each rung that says nothing there."""
    why = {rung.name: rung.obstacle(backend, model) for rung in RUNGS}
    assert {name for name, text in why.items() if text} == left_out
    assert all(text.endswith(".") for text in why.values() if text)


def test_compiling_pays_when_the_time_is_won_back():
    """After as many epochs as the gain of one goes into what compiling took more."""
    compiled = replace(after((3.0, 3.0, 3.0)), start_seconds=20.5)
    assert ladder.pays_after(
        compiled, replace(FIRST, start_seconds=0.5)
    ) == pytest.approx(20)
    assert ladder.pays_after(after((5.0, 5.0, 5.0)), FIRST) is None


def test_a_machine_that_changed_its_speed_is_noticed():
    """By the base's own epochs: 4 s when it was measured itself."""
    assert ladder.drift(after((1.0, 1.0, 1.0)), FIRST) is None
    assert ladder.drift(after((1.0,), (4.8,)), FIRST) is None
    assert ladder.drift(after((1.0,), (2.0,)), FIRST) == 2.0
    assert ladder.drift(after((1.0,), (8.0,)), FIRST) == 0.5
    assert ladder.drift(FIRST, None) is None


LIMIT = Roofline(
    1000.0, 10.0, 50.0, {"float32": (1e6, 2e6, 3e6)}, (1e3, 1e3), (2e3, 2e3)
)


def test_the_limit_is_the_longer_of_arithmetic_and_memory():
    """As in the roofline model; the fastest reading counts."""
    assert LIMIT.arithmetic_seconds(100) == pytest.approx(1 / 30)
    assert LIMIT.memory_seconds(100, 4) == 1.0 + 0.1
    assert LIMIT.seconds(100, 4) == 1.1
    assert replace(LIMIT, bytes_per_second=(1e9,)).seconds(100, 1) == pytest.approx(
        1 / 30
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [("epochs", 0), ("epochs", 11), ("images", 9), ("task", "regression")],
)
def test_an_impossible_climb_is_refused(name, value):
    """In one sentence."""
    possible = Climb("sprites", "ann", "cpu", 1, 60_000)
    with pytest.raises(ValueError, match=r"\.$"):
        replace(possible, **{name: value})


def test_no_two_seeds_are_farther_apart_than_the_noise() -> None:
    """The figure comes from the seeds that were tried, rounded up by less than 1 %."""
    spreads = [max(found) - min(found) for found in ladder.SEEDS.values()]
    assert all(len(found) == 10 for found in ladder.SEEDS.values())
    assert max(spreads) <= ladder.NOISE < max(spreads) + 0.01
