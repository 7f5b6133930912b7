import pytest

from core.config import RunConfig
from core.lessons.compare import candidates
from core.lessons.compare.candidates import Candidate
from core.lessons.compare.race_result import CandidateFailure, Race, Trial
from core.lessons.compare.race_verdict import agreement, verdict
from core.results import LossPoint
from tests.app.samples import RACE

GPU = Candidate("cuda", "CUDA", "Testing card", 3)
ONE, TWO = candidates.cpu(1), candidates.cpu(2)


def a_race(first, second, pair=(ONE, TWO), failures=(), model="ann", losses=((), ())):
    """A race with the given seconds of training in its counted trials."""
    trials = [
        Trial(c, repeat, 10, seconds, 640, seconds / 10, 1000, None, losses[c])
        for c, times in enumerate((first, second))
        for repeat, seconds in enumerate([99.0, *times])
    ]
    config = RunConfig(model=model)
    return Race(pair, (None, None), config, 10, 3, tuple(trials), failures, "2026")


@pytest.mark.parametrize(
    ("race", "sentence"),
    [
        (a_race([1] * 3, [4] * 3), "CPU (1 thread) ran 4.0 times as fast as"),
        (a_race([4, 4, 5], [1] * 3, (ONE, GPU)), "Testing card ran 4.0 times"),
        (a_race([4, 4, 5], [1] * 3, (ONE, GPU)), "4.0 to 5.0 over 3 pairs"),
        # Fewer threads win for a reason that fits the step.
        (a_race([0.01] * 3, [0.02] * 3), "takes only"),
        (a_race([1] * 3, [2] * 3), "had to share its core"),
        (a_race([1] * 3, [2] * 3, (ONE, ONE)), "the same device"),
        (a_race([1] * 3, [2] * 3, (GPU, GPU)), "the same device"),
    ],
)
def test_the_verdict_names_winner_factor_and_reason(race, sentence):
    assert sentence in verdict(race)


def test_repeats_that_differ_too_much_have_no_typical_figure():
    text = verdict(a_race([1, 1, 1], [2, 4, 5]))
    assert "ran 2.0 to 5.0 times as fast as CPU (2" in text
    assert "takes only" not in text  # no reason for a figure that isn't known


def test_who_failed_does_not_lose_by_a_factor():
    failed = (CandidateFailure(1, "There was not enough memory."),)
    text = verdict(a_race([1, 1, 1], [], failures=failed))
    assert "no winner" in text
    assert "CPU (2 threads)" in text


def test_the_warm_up_counts_for_nothing():
    race = a_race([1, 2, 3], [1, 1, 1])
    assert race.seconds(0, "training") == [1, 2, 3]
    assert race.seconds(0, "both") == pytest.approx([1.1, 2.2, 3.3])


def curves(*values):
    return tuple(
        tuple(LossPoint(step, 0.1 * step, loss) for step, loss in enumerate(line, 1))
        for line in values
    )


def test_curves_agree_or_the_reason_is_given():
    same, near, apart = (curves([2.0, 1.0], [2.0, e]) for e in (1.0, 1.000001, 1.5))
    assert "bit for bit" in agreement(a_race([1], [1], losses=same))
    rounded = agreement(a_race([1], [1], losses=near))
    assert "agree to at least 6 digits" in rounded
    assert "round each sum" in rounded
    assert "TF32" not in rounded
    assert "33.3%" in agreement(a_race([1], [1], losses=apart))
    cnn = {"pair": (ONE, GPU), "model": "cnn"}
    assert "TF32" in agreement(a_race([1], [1], losses=near, **cnn))
    assert "dropout" in agreement(a_race([1], [1], losses=apart, **cnn))


def test_a_race_has_its_warm_up_apart():
    rows = {(r["contender"], r["what"]): r for r in RACE.rows()}
    training = rows["CPU (2 threads)", "training"]
    assert (training["median_seconds"], training["n"]) == (3.0, 3)
    assert (training["least_seconds"], training["most_seconds"]) == (2.0, 4.0)
    assert training["samples_per_second"] == pytest.approx(640 / 3)
    assert training["joules_a_heat"] is None
    assert rows["Testing card", "training"]["joules_a_heat"] == 5.0
    assert rows["CPU (2 threads)", "training, warm-up"]["median_seconds"] == 1.0
