"""core.compare.verdict: who wins, by how much, and when nobody does."""

import pytest

from core.compare import candidates, verdict
from core.compare.candidates import Candidate
from core.compare.results import CandidateFailure, Race, Trial
from core.config import RunConfig
from core.results import LossPoint

GPU = Candidate("cuda", "CUDA", "Testing card", 3)
ONE, TWO = candidates.cpu(1), candidates.cpu(2)


def a_race(first, second, pair=(ONE, TWO), failures=(), model="ann", losses=((), ())):
    """A race with the given seconds of training in its counted trials."""
    trials = [
        Trial(c, repeat, 10, seconds, 640, seconds / 10, 1000, None, losses[c])
        for c, taken in enumerate((first, second))
        for repeat, seconds in enumerate([99.0, *taken])
    ]
    config = RunConfig(model=model)
    return Race(pair, (None, None), config, 10, 3, tuple(trials), failures, "2026")


def test_the_verdict_names_winner_and_factor():
    """Both ways round, the factor is above 1 and of the winner."""
    said = verdict.verdict(a_race([1, 1, 1], [4, 4, 4]))
    assert "CPU (1 thread) wins: it is 4.0 times as fast as CPU (2 " in said
    said = verdict.verdict(a_race([4, 4, 5], [1, 1, 1], (ONE, GPU)))
    assert "Testing card wins: it is 4.0 times" in said
    assert "4.0 to 5.0 over 3 pairs" in said


def test_repeats_that_differ_too_much_have_no_typical_figure():
    """Who is faster is sure all the same; by how much is a range."""
    said = verdict.verdict(a_race([1, 1, 1], [2, 5, 17]))
    assert "wins: it is 2.0 to 17 times as fast as CPU (2" in said
    assert "race again when nothing else is" in said
    assert "takes only" not in said  # no reason for a figure that isn't known


def test_fewer_threads_win_for_a_reason_that_fits_the_step():
    """A small step is not worth sharing; for a large one a core must be missing."""
    assert "takes only" in verdict.verdict(a_race([0.01] * 3, [0.02] * 3))
    assert "no free core" in verdict.verdict(a_race([1] * 3, [2] * 3))


def test_of_two_machines_everything_counts():
    """Not only threads; and one device has no advantage over itself."""
    two = (ONE.on("a"), TWO.on("b"))
    assert "on two machines" in verdict.verdict(a_race([1] * 3, [2] * 3, two))
    said = verdict.verdict(a_race([1, 1, 1], [0.5, 2, 1], two))
    assert "Too close to call on these machines" in said
    for itself in (ONE, GPU):
        said = verdict.verdict(a_race([1] * 3, [2] * 3, (itself, itself)))
        assert "the same device" in said


def test_the_verdict_can_be_too_close_to_call():
    """An interval that holds 1 names no winner."""
    said = verdict.verdict(a_race([1, 1, 1], [0.5, 2, 1]))
    assert "Too close to call on this machine" in said
    assert "wins" not in said


def test_who_failed_does_not_lose_by_a_factor():
    """A candidate that is out leaves no winner and no ratio in the sentence."""
    failed = (CandidateFailure(1, "The memory ran out."),)
    said = verdict.verdict(a_race([1, 1, 1], [], failures=failed))
    assert "no winner" in said
    assert "CPU (2 threads)" in said


def test_the_warm_up_counts_for_nothing():
    """Trial 0, here of 99 seconds, is in no figure."""
    race = a_race([1, 2, 3], [1, 1, 1])
    assert race.seconds(0, "training") == [1, 2, 3]
    assert race.seconds(0, "both") == pytest.approx([1.1, 2.2, 3.3])


def curves(*values):
    return tuple(
        tuple(LossPoint(step, 0.1 * step, each) for step, each in enumerate(line, 1))
        for line in values
    )


def test_curves_agree_or_the_reason_is_given():
    """Equal, equal but for rounding, or apart with the reason why."""
    same = a_race([1], [1], losses=curves([2.0, 1.0], [2.0, 1.0]))
    assert "bit for bit" in verdict.agreement(same)
    near_curves = curves([2.0, 1.0], [2.0, 1.000001])
    near = a_race([1], [1], losses=near_curves)
    assert "agree within" in verdict.agreement(near)
    assert "rounding" in verdict.agreement(near)
    assert "TF32" not in verdict.agreement(near)
    convolutions = a_race([1], [1], (ONE, GPU), model="cnn", losses=near_curves)
    assert "TF32" in verdict.agreement(convolutions)
    apart = curves([2.0, 1.0], [2.0, 1.5])
    drifted = a_race([1], [1], losses=apart)
    assert "33.3%" in verdict.agreement(drifted)
    masks = a_race([1], [1], (ONE, GPU), model="cnn", losses=apart)
    assert "dropout" in verdict.agreement(masks)
