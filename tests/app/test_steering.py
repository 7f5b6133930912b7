import itertools
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from core import steering, training
from core.config import SCHEDULES, RunConfig
from core.errors import CancelledError
from core.results import PAUSE_SECONDS, Change, Pause, RunResult
from core.watch import NO_CONTROL, Control, Watch
from to_device.errors import ExplainedError

CONFIG = RunConfig(task="sprites", epochs=2, batch_size=500, device="cpu")
AWAY = 10_000.0  # seconds that a look takes in a pause, by the clock of a test
pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def plain() -> RunResult:
    return training.run(CONFIG)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look in a pause takes hours."""
    slept, passed = itertools.count(1), [0.0]

    def sleep(_: float) -> None:
        passed.append(next(slept) * AWAY)

    def now() -> float:
        return time.perf_counter() + passed[-1]

    clock = SimpleNamespace(sleep=sleep, perf_counter=now)  # other threads have theirs
    for module in (steering, training):
        monkeypatch.setattr(module, "time", clock)


def steered(config: RunConfig, *controls: Control) -> list[Any]:
    """All that a run tells, with its result; each control is there for four looks."""
    reports: list[Any] = []
    looks = itertools.count()
    there = (NO_CONTROL, *controls)
    watch = Watch(
        reports.append, control=lambda: there[min(len(controls), next(looks) // 4)]
    )
    result = training.run(config, watch)
    return [*reports, result]


def losses(result: RunResult) -> list[float]:
    return [point.loss for point in result.losses]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_factor_scales_all_that_is_left_of_a_schedule(schedule: str) -> None:
    config = replace(CONFIG, schedule=schedule)
    rates: list[list[float]] = []
    for factor in (1, 3):
        run = training.Training(config)
        rates.append(run_rates := [])
        for _ in run.train_epoch():
            run_rates.append(run.optimizer.param_groups[0]["lr"])
            if len(run_rates) == 5:
                steering.scale(run.optimizer, factor)
    assert rates[1][:5] == rates[0][:5]
    assert rates[1][5:] == pytest.approx([3 * rate for rate in rates[0][5:]])


def test_a_change_counts_from_the_next_step_on(plain: RunResult) -> None:
    reports = steered(CONFIG, Control(0.01), Control(0.0002))
    result = reports[-1]
    assert (
        tuple(change for change in reports if isinstance(change, Change))
        == result.changes
    )
    assert [change.learning_rate for change in result.changes] == [0.01, 0.0002]
    same = result.changes[0].step + 1  # a step's loss is from before its update
    assert losses(result)[:same] == losses(plain)[:same]
    assert losses(result)[same] != losses(plain)[same]
    assert [change["step"] for change in result.to_json()["changes"]] == [
        change.step for change in result.changes
    ]
    assert "changes" not in plain.to_json()


@pytest.mark.usefixtures("clock")
def test_a_pause_ends_by_itself_and_counts_nowhere(plain: RunResult) -> None:
    reports = steered(CONFIG, Control(paused=True))
    result = reports[-1]
    pauses = [pause for pause in reports if isinstance(pause, Pause)]
    assert [pause.is_on for pause in pauses] == [True, False]
    assert [pause.left for pause in pauses] == [PAUSE_SECONDS, 0]
    assert result.checkpoint == plain.checkpoint
    assert losses(result) == losses(plain)
    assert result.changes == ()
    epochs = [epoch.seconds for epoch in result.history]
    assert max(result.seconds, result.losses[-1].seconds, *epochs) < AWAY


def test_a_paused_run_is_cancelled() -> None:
    reports: list[Any] = []
    watch = Watch(
        reports.append,
        cancelled=lambda: any(isinstance(report, Pause) for report in reports),
        control=lambda: Control(paused=True),
    )
    with pytest.raises(CancelledError):
        training.run(CONFIG, watch)


def test_the_advice_after_an_overflow_is_about_the_rate_that_was_set() -> None:
    with pytest.raises(ExplainedError, match=r"\b0\.001\b"):
        steered(CONFIG, Control(1e25))
