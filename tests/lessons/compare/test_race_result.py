"""Who wins, by how much, and when no one does."""

import pytest

from core.config import RunConfig
from core.lessons.compare import candidates
from core.lessons.compare.candidates import Candidate
from core.lessons.compare.race_result import (
    CandidateFailure,
    Race,
    Trial,
    agreement,
    verdict,
)
from core.results import LossPoint
from tests.samples import RACE

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
    text = verdict(a_race([1, 1, 1], [4, 4, 4]))
    assert "CPU (1 thread) wins: it is 4.0 times as fast as CPU (2 " in text
    text = verdict(a_race([4, 4, 5], [1, 1, 1], (ONE, GPU)))
    assert "Testing card wins: it is 4.0 times" in text
    assert "4.0 to 5.0 over 3 pairs" in text


def test_repeats_that_differ_too_much_have_no_typical_figure():
    text = verdict(a_race([1, 1, 1], [2, 5, 17]))
    assert "wins: it is 2.0 to 17 times as fast as CPU (2" in text
    assert "race again when nothing else is" in text
    assert "takes only" not in text  # no reason for a figure that isn't known


def test_fewer_threads_win_for_a_reason_that_fits_the_step():
    assert "takes only" in verdict(a_race([0.01] * 3, [0.02] * 3))
    assert "no free core" in verdict(a_race([1] * 3, [2] * 3))


def test_a_device_has_no_advantage_over_itself():
    for itself in (ONE, GPU):
        text = verdict(a_race([1] * 3, [2] * 3, (itself, itself)))
        assert "the same device" in text


def test_the_verdict_can_be_too_close_to_call():
    text = verdict(a_race([1, 1, 1], [0.5, 2, 1]))
    assert "Too close to call on this machine" in text
    assert "wins" not in text


def test_who_failed_does_not_lose_by_a_factor():
    failed = (CandidateFailure(1, "The memory ran out."),)
    text = verdict(a_race([1, 1, 1], [], failures=failed))
    assert "no winner" in text
    assert "CPU (2 threads)" in text


def test_the_warm_up_counts_for_nothing():
    race = a_race([1, 2, 3], [1, 1, 1])
    assert race.seconds(0, "training") == [1, 2, 3]
    assert race.seconds(0, "both") == pytest.approx([1.1, 2.2, 3.3])


def curves(*values):
    return tuple(
        tuple(LossPoint(step, 0.1 * step, each) for step, each in enumerate(line, 1))
        for line in values
    )


def test_curves_agree_or_the_reason_is_given():
    same = a_race([1], [1], losses=curves([2.0, 1.0], [2.0, 1.0]))
    assert "bit for bit" in agreement(same)
    near_curves = curves([2.0, 1.0], [2.0, 1.000001])
    near = a_race([1], [1], losses=near_curves)
    assert "agree within" in agreement(near)
    assert "rounding" in agreement(near)
    assert "TF32" not in agreement(near)
    convolutions = a_race([1], [1], (ONE, GPU), model="cnn", losses=near_curves)
    assert "TF32" in agreement(convolutions)
    apart = curves([2.0, 1.0], [2.0, 1.5])
    drifted = a_race([1], [1], losses=apart)
    assert "33.3%" in agreement(drifted)
    masks = a_race([1], [1], (ONE, GPU), model="cnn", losses=apart)
    assert "dropout" in agreement(masks)


def test_a_race_has_its_warm_up_apart():
    rows = {(r["contender"], r["what"]): r for r in RACE.rows()}
    training = rows["CPU (2 threads)", "training"]
    assert (training["median_seconds"], training["n"]) == (3.0, 3)
    assert (training["least_seconds"], training["most_seconds"]) == (2.0, 4.0)
    assert training["samples_per_second"] == pytest.approx(640 / 3)
    assert training["joules_a_heat"] is None
    assert rows["Testing card", "training"]["joules_a_heat"] == 5.0
    assert rows["CPU (2 threads)", "training, warm-up"]["median_seconds"] == 1.0
