from dataclasses import replace
from functools import reduce
from time import time
from types import SimpleNamespace

import pandas as pd
import pytest

from core.config import RunConfig
from core.jobs.job import Job, Progress
from core.lessons.train import progress_page as progress
from core.measure.pace_result import Pace, Paces
from core.results import Epoch, LossPoint, Started, StepProgress, training_speed
from core.store.tables import RunSummary
from core.ui import runs
from tests.app.samples import CARD, CPU
from tests.app.store.made_up import summary
from tests.process import HOUR

STEPS = 40
CONFIG = RunConfig(task="sprites", epochs=2)


def events(steps: int = STEPS) -> tuple:
    reports: list = [Started(CPU, 1000, STEPS, 20, 10)]
    for step in range(1, steps + 1):
        losses = (LossPoint(step, step * 0.5, 2 / step),)
        reports.append(StepProgress(step, losses, 1e3, step * 0.5))
        if step % 20 == 0:
            reports.append(Epoch(step // 20, step, 1.0, 0.9, 0.8, 10.0, 1e3, 0.5, 0.6))
    return tuple(reports)


@pytest.fixture
def job() -> Job:
    return after(STEPS)


def after(steps: int) -> Job:
    job = Job("a", runs.RUN, (CONFIG,), "train", "me", "running")
    return reduce(Job.after, events(steps), job)


def test_all_who_watch_share_one_curve(job):
    first = runs.view(job)
    assert runs.view(job) is first
    assert runs.view(job.after(events()[1])) is not first


def test_the_curve_is_smoothed_over_what_came_before(job):
    curve = runs.view(job).curve.to_pandas()
    assert list(curve["step"]) == list(range(1, STEPS + 1))
    assert list(curve["epoch"]) == pytest.approx([n / 20 for n in curve["step"]])
    mean = pd.Series([2 / n for n in curve["step"]]).ewm(span=3).mean()
    assert list(curve["smoothed"]) == pytest.approx(list(mean))
    assert runs.view(job).smoothed_loss == pytest.approx(mean.iloc[-1])


def test_tables_of_several_runs_name_each(job):
    other = replace(job, id="b", arguments=(replace(CONFIG, batch_size=128),))
    waiting = replace(job, id="c", status="queued", progress=Progress())
    viewed = [runs.view(one_job) for one_job in (job, other, waiting)]
    losses = runs.loss_table(viewed).to_pandas()
    assert list(losses.groupby("run").size()) == [STEPS, STEPS]
    names = losses.dropna(subset="name_at")
    assert list(names["step"]) == [STEPS, STEPS]
    # The runs end at the same loss, so their names are moved apart.
    first, second = names["name_at"]
    assert second - first == pytest.approx(runs.NAME_SHARE * losses["loss"].max())
    epochs = runs.epoch_table(viewed).to_pandas()
    assert len(epochs) == 8
    assert set(epochs.loc[epochs["split"] == "test", "accuracy"]) == {0.6}
    for table in (runs.loss_table, runs.epoch_table):
        assert table([]).num_rows == 0
        assert table([]).schema == table(viewed).schema


def test_the_time_left_is_estimated_once_enough_is_done():
    assert runs.view(after(1)).seconds_left is None
    run = runs.view(after(10))
    assert run.seconds_left == pytest.approx(15)
    short, share = progress.in_short(run)  # Home's line says it, too
    assert (share, "about 15 s left" in short, "step" in short) == (0.25, True, False)


def test_a_run_has_its_number_for_life(job, monkeypatch):
    runs.forget("me")
    ids = ["a", "b", "c"]
    rows = [SimpleNamespace(id=run_id) for run_id in reversed(ids)]
    monkeypatch.setattr(runs, "stored_runs", lambda *_, **__: rows)
    monkeypatch.setattr(runs, "engine", lambda: SimpleNamespace(jobs=lambda *_: [job]))
    assert [runs.number(run_id, "me") for run_id in reversed(ids)] == [3, 2, 1]
    rows[:] = [SimpleNamespace(id=run_id) for run_id in ("d", "c")]
    assert [runs.number(run_id, "me") for run_id in ("d", "c")] == [4, 3]
    assert runs.view(job).name == "Run 1"


def test_the_speed_of_a_run_is_that_of_all_its_samples():
    """Not of its last epoch, nor a mean of rates: a slow epoch weighs what it took."""
    quick = replace(events()[-1], seconds=10.0, samples_per_second=100.0)
    slow = replace(quick, seconds=30.0, samples_per_second=20.0)
    assert training_speed((quick, slow)) == 40.0
    assert training_speed(()) is None


def test_a_run_like_none_before_takes_what_others_took_against_the_idle_machine(
    monkeypatch,
):
    other, away = replace(CONFIG, epochs=4), replace(CONFIG, host="elsewhere")
    measured = Paces((Pace(CONFIG, 1e-4, 0, 0),), CARD, "2026-11-29")
    idle = measured.seconds(CONFIG)
    ran = [
        replace(job, status=status, seconds=4 * idle)
        for config, status in (
            (other, "finished"),
            (CONFIG, "failed"),
            (away, "finished"),
        )
        for job in [Job("a", runs.RUN, (config,), "train")]
    ]
    engine = SimpleNamespace(expected_seconds=lambda *_: None, jobs=lambda _: ran)
    newest, stored = SimpleNamespace(value=measured), list[RunSummary]()
    monkeypatch.setattr(runs, "engine", lambda: engine)
    monkeypatch.setattr(runs, "stored_runs", lambda **_: stored)
    monkeypatch.setattr(runs.last_measurement, "newest", lambda _: newest)
    expected = 4 * idle / measured.seconds(other) * idle
    assert runs.expected_seconds(CONFIG) == pytest.approx(expected)
    assert runs.expected_seconds(replace(CONFIG, half=True)) is None
    stored += [  # after a restart, memory has none; the first of them is in both
        summary(id="a", ended=time(), seconds=idle, **vars(CONFIG)),
        summary(id="b", ended=time(), seconds=6 * idle, **vars(CONFIG)),
        summary(id="c", ended=time() - HOUR, seconds=99.0, **vars(CONFIG)),
        summary(id="d", ended=time(), seconds=99.0, **vars(away)),
        summary(id="e", ended=time(), seconds=99.0, task="of another version"),
    ]
    both = (4 + 6) * idle / (measured.seconds(other) + idle) * idle
    assert runs.expected_seconds(CONFIG) == pytest.approx(both)
    ran.clear()
    assert runs.expected_seconds(CONFIG) == pytest.approx((1 + 6) / 2 * idle)
    engine.expected_seconds = lambda *_: 7.0  # from runs like it
    assert runs.expected_seconds(CONFIG) == 7
