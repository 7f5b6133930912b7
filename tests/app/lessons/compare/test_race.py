from dataclasses import replace

import pytest
import torch

from core import devices
from core.config import RunConfig
from core.errors import explain
from core.lessons.compare import candidates, race
from core.lessons.compare.race_result import Trial, TrialProgress
from core.lessons.compare.race_verdict import agreement, words
from core.measure import speedup
from core.watch import Watch
from tests.process import HOUR

CONFIG = RunConfig(task="sprites", batch_size=64)
ONE = candidates.cpu(1)
PAIR = candidates.tell_apart(ONE, ONE)  # threads of a busy machine would take minutes
GONE = candidates.Candidate("xpu", "XPU", "A card that is not here", 1)

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def raced():
    """A race of 30 steps and two repeats, with its events."""
    events = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(race, "WARM_UP_SECONDS", HOUR)
        return race.race(CONFIG, PAIR, 30, 2, Watch(events.append)), events


def test_contenders_alternate_after_a_warm_up(raced):
    result, _ = raced
    assert [(h.candidate, h.repeat) for h in result.trials] == [
        *((0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2))
    ]
    assert [len(result.counted(c)) for c in (0, 1)] == [2, 2]


def test_both_loops_are_timed(raced):
    result, _ = raced
    for trial in result.trials:
        assert trial.steps == 30
        assert trial.train_samples == 30 * 64
        assert trial.evaluate_samples == 2000
        assert trial.train_seconds > 0
        assert trial.evaluate_seconds > 0
        assert trial.seconds == trial.train_seconds + trial.evaluate_seconds


def test_same_seed_same_batches_same_losses(raced):
    result, _ = raced
    curves = {tuple(loss.loss for loss in trial.losses) for trial in result.trials}
    assert len(curves) == 1
    assert agreement(result) == words("race.agreement.same")


def test_trials_are_reported_while_the_race_runs(raced):
    result, events = raced
    assert [e for e in events if isinstance(e, Trial)] == list(result.trials)
    reported = [
        e
        for e in events
        if isinstance(e, TrialProgress) and (e.candidate, e.repeat) == (1, 2)
    ]
    assert (
        tuple(loss for progress in reported for loss in progress.losses)
        == result.trials[-1].losses
    )


def test_a_candidate_that_is_gone_fails_alone():
    events = []
    result = race.race(CONFIG, (GONE, ONE), 10, 2, Watch(events.append))
    (failure,) = result.failures
    assert failure.candidate == 0
    assert GONE.device in failure.message
    assert failure in events
    assert len(result.counted(1)) == 2
    assert result.speedup() is None
    assert {row["contender"] for row in result.rows()} == {ONE.name}


def test_memory_that_runs_out_in_the_middle_keeps_what_was(monkeypatch):
    real = race.trial

    def trial(config, candidate, steps, at, watch):
        if at == (1, 1):
            raise torch.OutOfMemoryError
        return real(config, candidate, steps, at, watch)

    monkeypatch.setattr(race, "trial", trial)
    result = race.race(CONFIG, PAIR, 10, 2)
    message = explain(torch.OutOfMemoryError(), (CONFIG,))
    assert result.failures[0].message == message
    assert [len(result.counted(c)) for c in (0, 1)] == [2, 0]
    assert [h.repeat for h in result.trials if h.candidate == 1] == [0]


def test_a_slow_candidate_shortens_the_trials_of_both(monkeypatch):
    monkeypatch.setattr(race, "WARM_UP_SECONDS", 0.0)
    result = race.race(CONFIG, PAIR, 100, 1)
    assert {trial.steps for trial in result.trials} == {race.FEWEST_STEPS}
    assert result.steps == race.FEWEST_STEPS


def test_a_long_race_ends_with_the_fewest_repeats(monkeypatch):
    monkeypatch.setattr(race, "RACE_SECONDS", 0.0)
    result = race.race(CONFIG, PAIR, 2, 9)
    assert len(result.counted(0)) == speedup.FEWEST_REPEATS
    assert len(result.counted(1)) == speedup.FEWEST_REPEATS


def test_threads_are_set_for_a_trial_and_given_back(monkeypatch):
    threads = []

    def trial(_config, _candidate, steps, at, *_):
        threads.append(torch.get_num_threads())
        if len(threads) == 2:
            raise RuntimeError("the device has gone")
        return Trial(*at, steps, 1.0, 64, 1.0, 100, None, ())

    monkeypatch.setattr(race, "trial", trial)
    before = torch.get_num_threads()
    result = race.race(CONFIG, (candidates.cpu(2), candidates.cpu(1)), 2, 1)
    assert threads == [2, 1, 2]
    assert torch.get_num_threads() == before
    assert "RuntimeError" in result.failures[0].message
    assert result.environments[0].threads == 2


def test_the_simulated_accelerator_races_nobody():
    simulated = replace(candidates.cpu(1), device="sim")
    result = race.race(CONFIG, (candidates.cpu(1), simulated), 2, 1)
    with pytest.raises(devices.UntimedError) as untimed:
        devices.resolve_timed(simulated.device)
    assert result.failures[0].message == str(untimed.value)
    assert {trial.candidate for trial in result.trials} == {0}
    assert simulated.device not in {
        option.device for option in candidates.candidates(devices.describe())
    }


@pytest.mark.gpu
def test_cpu_against_accelerator():
    if devices.accelerator() is None:
        pytest.skip("nothing races on the simulated accelerator")
    pair = candidates.default_pair(candidates.candidates(devices.describe()))
    result = race.race(CONFIG, pair, 30, 3)
    assert not result.failures
    first, second = (result.counted(c)[0].losses[0].loss for c in (0, 1))
    assert first == pytest.approx(second, rel=1e-3)
