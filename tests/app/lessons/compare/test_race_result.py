import pytest

from core.config import RunConfig
from core.lessons.compare import candidates
from core.lessons.compare.candidates import Candidate
from core.lessons.compare.race_result import CandidateFailure, Race, Trial
from core.lessons.compare.race_verdict import agreement, verdict, why, words
from core.results import LossPoint
from tests.app.samples import RACE
from tests.figures import figures

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
    ("race", "winner", "told", "reason"),
    [
        (a_race([1] * 3, [4] * 3), 0, ["4.0", "4.0", "4.0", "3"], "fewer"),
        (
            a_race([4, 4, 5], [1] * 3, (ONE, GPU)),
            1,
            ["4.0", "4.0", "5.0", "3"],
            "accelerator",
        ),
        (a_race([1] * 3, [4] * 3, (ONE, GPU)), 0, ["4.0", "4.0", "4.0", "3"], "cpu"),
        # Fewer threads win for a reason that fits the step.
        (a_race([0.01] * 3, [0.02] * 3), 0, ["2.0", "2.0", "2.0", "3"], "fewer_small"),
        (a_race([2] * 3, [1] * 3), 1, ["2.0", "2.0", "2.0", "3"], "more"),
        (a_race([1] * 3, [2] * 3, (ONE, ONE)), 0, ["2.0", "2.0", "2.0", "3"], "same"),
        (a_race([1] * 3, [2] * 3, (GPU, GPU)), 0, ["2.0", "2.0", "2.0", "3"], "same"),
    ],
)
def test_the_verdict_names_winner_factor_and_reason(race, winner, told, reason):
    key, fields = why(race, winner)
    text, because = verdict(race), words(f"race.why.{key}", **fields)
    assert (race.speedup().winner, key) == (winner, reason)
    assert text.endswith(because)
    factors = text.removesuffix(because)
    for candidate in race.candidates:
        factors = factors.replace(candidate.name, "", 1)
    assert figures(factors) == told
    winners = race.candidates[winner].name
    assert text.removeprefix("**").startswith(winners)


def test_repeats_that_differ_too_much_have_no_typical_figure():
    text = verdict(a_race([1, 1, 1], [2, 4, 5]))
    assert figures(text.replace(ONE.name, "").replace(TWO.name, "")) == [
        "2.0",
        "5.0",
        "3",
    ]


def test_who_failed_does_not_lose_by_a_factor():
    failed = (CandidateFailure(1, "There was not enough memory."),)
    text = verdict(a_race([1, 1, 1], [], failures=failed))
    assert TWO.name in text
    assert figures(text.replace(TWO.name, "")) == []


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
    cnn = {"pair": (ONE, GPU), "model": "cnn"}
    tf32 = words("race.agreement.tf32")
    for losses, more, reason, fields in (
        (same, {}, "same", {}),
        (near, {}, "rounded", {"digits": 6, "tf32": ""}),
        (apart, {}, "apart", {"most": "33.3%", "tf32": ""}),
        (near, cnn, "rounded", {"digits": 6, "tf32": tf32}),
        (apart, cnn, "dropout", {"most": "33.3%"}),
    ):
        text = words(f"race.agreement.{reason}", **fields)
        assert agreement(a_race([1], [1], losses=losses, **more)) == text


def test_a_race_has_its_warm_up_apart():
    rows = {(r["contender"], r["what"]): r for r in RACE.rows()}
    training = rows["CPU (2 threads)", "training"]
    assert (training["median_seconds"], training["n"]) == (3.0, 3)
    assert (training["least_seconds"], training["most_seconds"]) == (2.0, 4.0)
    assert training["samples_per_second"] == pytest.approx(640 / 3)
    assert training["joules_a_heat"] is None
    assert rows["Testing card", "training"]["joules_a_heat"] == 5.0
    assert rows["CPU (2 threads)", "training, warm-up"]["median_seconds"] == 1.0
