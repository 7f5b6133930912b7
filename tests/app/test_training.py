import gc
import io
import re
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import nn

from core import devices, loops, models, state_dict, training
from core.config import RunConfig
from core.data import curve, datasets
from core.data.feeds import in_order, make
from core.errors import CancelledError
from core.results import (
    DRAWN_STEPS,
    FIRST_STEPS,
    WALL,
    Epoch,
    Fit,
    RunResult,
    Started,
    StepProgress,
)
from core.training import REPORT_SECONDS
from core.watch import Watch
from to_device.errors import ExplainedError
from to_device.sim import memory

CPU = torch.device("cpu")
THERE = str(devices.other_than_cpu())
CONFIG = RunConfig(task="sprites", epochs=2, batch_size=500, device="cpu", augment=True)
ONCE = replace(CONFIG, epochs=1)
CURVE = RunConfig.with_recipe(
    task="regression", criterion="gaussian", device="cpu", epochs=8
)
CURVE_ONCE = replace(CURVE, epochs=1, batch_size=256)
pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def reports() -> list[Any]:
    """All that the run CONFIG tells, with its result at the end."""
    reports: list[Any] = []
    reports.append(training.run(CONFIG, Watch(reports.append)))
    return reports


@pytest.fixture
def result(reports: list[Any]) -> RunResult:
    """The result of that run."""
    return reports[-1]


@cache
def trained(config: RunConfig) -> RunResult:
    """A run that several tests look at."""
    return training.run(config)


def losses(result: RunResult) -> list[tuple[int, float]]:
    return [(point.step, point.loss) for point in result.losses]


# The same again


def test_a_seed_repeats_a_run(result: RunResult) -> None:
    again = training.run(CONFIG)
    assert again.checkpoint == result.checkpoint
    assert losses(again) == losses(result)
    assert again.test_correct == result.test_correct


def test_each_epoch_tells_what_is_said_of_the_first_test_images(
    result: RunResult,
) -> None:
    test = datasets.load("sprites").test.first(WALL)
    model = state_dict.load(result.checkpoint, "ann", CPU)
    outputs, _ = loops.predict(model, in_order(test, CPU), CPU)
    first, last = (epoch.wall for epoch in result.history)
    assert last == tuple(outputs.argmax(dim=1).tolist())
    assert first != last
    assert len(first) == len(last) == WALL
    assert not any("wall" in epoch for epoch in result.to_json()["history"])
    assert trained(CURVE_ONCE).history[-1].wall == ()


@pytest.mark.parametrize("model", ["ann", "cnn"])
def test_without_the_fast_settings_a_run_is_the_plain_loop(model: str) -> None:
    config = replace(ONCE, model=model, weight_decay=0.05)
    split = datasets.load("sprites").train.first(1500)
    run = training.Training(config, split)
    losses = torch.stack([*run.train_epoch()]).tolist()
    torch.manual_seed(config.seed)
    plain = models.build(model)
    parameters, rate = plain.parameters(), config.learning_rate
    optimizer = torch.optim.AdamW(parameters, rate, weight_decay=0.05, fused=True)
    batches = make("memory", split, config.batch_size, CPU, config.seed, augment=True)
    expected = loops.train_epoch(plain, batches, nn.CrossEntropyLoss(), optimizer, CPU)
    assert losses == torch.stack([*expected]).tolist()
    sizes = {len(labels) for _, labels in run.in_order(split)}
    assert sizes == {1000, 500}


def test_a_run_with_the_fast_setting_is_evaluated_as_it_was_tested() -> None:
    fast: dict[str, Any] = {"fast": True, "task": "sprites", "device": "cpu"}
    config = RunConfig.with_recipe(**fast, epochs=1, mirror=True)
    result = training.run(config)
    test = in_order(datasets.load("sprites").test, CPU)
    model = state_dict.load_run(result.checkpoint, config, CPU)
    outputs, targets = loops.predict(model, test, CPU)
    correct = int((outputs.argmax(dim=1) == targets).sum())
    assert correct == result.test_correct
    plain = state_dict.load(result.checkpoint, "ann", CPU)
    other, _ = loops.predict(plain, test, CPU)
    assert not torch.equal(other, outputs)


@pytest.mark.parametrize("change", [{"seed": 1}, {"augment": False}])
def test_other_settings_other_weights(result: RunResult, change: dict) -> None:
    other = training.run(replace(CONFIG, **change))
    assert other.checkpoint != result.checkpoint


@pytest.mark.parametrize("feed", ["device", "dataloader"])
@pytest.mark.parametrize("config", [ONCE, CURVE_ONCE], ids=["images", "numbers"])
def test_feeds_end_alike(config: RunConfig, feed: str) -> None:
    assert config.feed == "memory"
    fed = training.run(replace(config, feed=feed))
    assert fed.checkpoint == trained(config).checkpoint


def test_evaluating_does_not_disturb_training(result: RunResult) -> None:
    shorter = trained(ONCE)
    steps = len(shorter.losses)
    assert losses(shorter) == losses(result)[:steps]
    assert shorter.history[0].test_loss == result.history[0].test_loss


@pytest.mark.gpu
@pytest.mark.parametrize("feed", ["memory", "device"])
def test_accelerator_learns_as_the_cpu_does(result: RunResult, feed: str) -> None:
    there = training.run(replace(CONFIG, device=THERE, feed=feed))
    assert there.environment.backend != "CPU"
    assert there.losses[0].loss == pytest.approx(result.losses[0].loss, rel=1e-4)
    assert there.test_accuracy == pytest.approx(result.test_accuracy, abs=0.03)
    assert state_dict.load(there.checkpoint, "ann", CPU)


@pytest.mark.sim
@pytest.mark.parametrize("item", [False, True])
def test_copies_in_each_step_are_listed_by_line(item: bool) -> None:
    config = replace(ONCE, augment=False, item_each_step=item)
    there = training.run(replace(config, device="sim"))
    assert losses(there) == losses(trained(config))
    assert there.test_accuracy == trained(config).test_accuracy
    traffic = there.traffic
    assert traffic is not None
    batches = list(in_order(datasets.load("sprites").train, CPU))
    images, labels = (sum(batch[i].nbytes for batch in batches) for i in (0, 1))
    inputs, targets, *fetches = traffic.crossings
    assert (inputs.code, targets.code) == tuple(
        f"{name} = {name}.to(device)" for name in ("inputs", "targets")
    )
    assert (inputs.to_device, targets.to_device) == (images, labels)
    assert inputs.waits == targets.waits == traffic.steps
    # The losses are fetched together, and by `.item()` each one a second time.
    fetched = (8 if item else 4) * traffic.steps
    assert sum(crossing.to_host for crossing in traffic.crossings) == fetched
    each_step = [
        crossing.waits for crossing in fetches if "loss.item()" in crossing.code
    ]
    assert each_step == item * [traffic.steps]
    assert trained(config).traffic is None


@pytest.mark.sim
def test_a_run_that_fills_the_device_leaves_it_empty() -> None:
    config = replace(ONCE, device="sim")
    gc.collect()  # what an earlier test has left
    before, reports = memory.allocated, list[Any]()
    with memory.limited_to(before + 3 * 2**20), pytest.raises(torch.OutOfMemoryError):
        training.run(replace(config, feed="device"), Watch(reports.append))
    gc.collect()
    assert memory.allocated == before
    assert training.run(config).test_accuracy


# What it tells


def test_reports_come_in_order(reports: list[Any]) -> None:
    kinds = "".join(type(report).__name__[:2] for report in reports)
    assert re.fullmatch("St(St)+Ep(St)+EpRu", kinds)
    assert isinstance(reports[0], Started)
    assert sum(isinstance(report, Started) for report in reports) == 1
    assert [e.epoch for e in reports if isinstance(e, Epoch)] == [1, 2]


def test_last_step_is_the_one_announced(reports: list[Any]) -> None:
    started, last = reports[0], [e for e in reports if isinstance(e, StepProgress)][-1]
    assert last.step == started.steps == 48
    assert (started.train_images, started.test_images) == (12_000, 2_000)
    assert started.parameters == 109_386


def test_each_loss_is_reported_once(reports: list[Any], result: RunResult) -> None:
    losses = [loss for e in reports if isinstance(e, StepProgress) for loss in e.losses]
    assert tuple(losses) == result.losses


def test_few_losses_are_drawn_in_a_long_run() -> None:
    points = training.run(replace(ONCE, batch_size=16, augment=False)).losses
    assert 250 < len(points) <= DRAWN_STEPS + FIRST_STEPS + 1
    assert [point.step for point in points[:FIRST_STEPS]] == [
        *range(1, FIRST_STEPS + 1)
    ]
    assert (points[0].step, points[-1].step) == (1, 750)
    for before, after in pairwise(points):
        assert before.step < after.step
        assert before.seconds <= after.seconds


def test_checkpoint_gives_the_reported_accuracy(result: RunResult) -> None:
    state = torch.load(io.BytesIO(result.checkpoint), weights_only=True)
    assert all(tensor.device.type == "cpu" for tensor in state.values())
    model = state_dict.load(result.checkpoint, "ann", CPU)
    batches = in_order(datasets.load("sprites").test, CPU)
    outputs, targets = loops.predict(model, batches, CPU)
    score = loops.score(outputs, targets, nn.CrossEntropyLoss())
    assert (score.correct, score.total) == (result.test_correct, result.test_total)
    assert score.loss == result.history[-1].test_loss
    assert score.accuracy > 0.6


@pytest.mark.parametrize(("batch_size", "steps"), [(4096, 3), (3000, 4), (2400, 5)])
def test_shortest_one_cycles_are_trained(batch_size: int, steps: int) -> None:
    config = replace(ONCE, batch_size=batch_size, schedule="one-cycle")
    assert training.run(config).losses[-1].step == steps


# Regression


@pytest.fixture(scope="module")
def curve_reports() -> list[Any]:
    """All that the run CURVE tells, with its result at the end."""
    reports: list[Any] = []
    reports.append(training.run(CURVE, Watch(reports.append)))
    return reports


def test_the_curve_is_learned(curve_reports: list[Any]) -> None:
    result = curve_reports[-1]
    assert result.r2 > 0.93
    assert curve.NOISE * 0.9 < result.rmse < curve.NOISE * 1.1
    assert result.fit.noise == pytest.approx(curve.NOISE, rel=0.1)
    fit = zip(curve.POSITIONS, result.fit.outputs, strict=True)
    assert max(abs(curve.f(x) - y) for x, y in fit) < 0.2
    assert result.test_accuracy is None
    assert result.test_correct is None


def test_regression_figures_are_those_of_the_checkpoint(
    curve_reports: list[Any],
) -> None:
    result = curve_reports[-1]
    test = datasets.load("regression").test
    with torch.inference_mode():
        outputs = state_dict.load(result.checkpoint, "simple", CPU)(test.images)
    y = test.labels.double()
    squares = (outputs.double() - y).square().sum()
    r2 = 1 - squares / (y - y.mean()).square().sum()
    assert result.r2 == pytest.approx(r2.item(), abs=1e-5)
    assert result.rmse == pytest.approx((squares / len(y)).sqrt().item(), abs=1e-5)
    assert (result.r2, result.rmse) == (
        result.history[-1].test_r2,
        result.history[-1].test_rmse,
    )


def test_fits_are_reported_ten_times_a_second_at_most(curve_reports: list[Any]) -> None:
    fits = [report for report in curve_reports if isinstance(report, Fit)]
    result = curve_reports[-1]
    assert fits[0].step == result.history[0].step
    assert fits[-1] == result.fit
    assert result.fit.step == result.history[-1].step
    assert len(fits) <= result.seconds / REPORT_SECONDS + 2


@pytest.mark.slow
@pytest.mark.gpu
@pytest.mark.parametrize("feed", ["memory", "device"])
def test_accelerator_learns_the_curve(curve_reports: list[Any], feed: str) -> None:
    there = training.run(replace(CURVE, device=THERE, feed=feed))
    assert there.environment.backend != "CPU"
    assert there.r2 == pytest.approx(curve_reports[-1].r2, abs=0.02)
    assert there.fit is not None
    assert there.fit.noise == pytest.approx(curve_reports[-1].fit.noise, rel=0.1)


# How it is stopped


@pytest.mark.parametrize("k", [1, 2, 24, 25, 30, 49])
def test_cancelled_within_a_batch(k: int) -> None:
    answers, steps = iter([False] * (k - 1) + [True]), []

    def report(event: object) -> None:
        if isinstance(event, StepProgress):
            steps.append(event.step)

    with pytest.raises(CancelledError):
        training.run(CONFIG, Watch(report, answers.__next__))
    assert next(answers, None) is None
    assert max(steps, default=0) < k


@pytest.mark.parametrize("rate", [1e25, 1e308])
def test_overflow_is_explained(rate: float) -> None:
    with pytest.raises(ExplainedError, match=r"step \d+:") as caught:
        training.run(replace(ONCE, learning_rate=rate))
    advised = re.search(r"learning rate of (\S+) or less", str(caught.value))
    assert advised
    training.run(replace(ONCE, learning_rate=float(advised[1])))


@pytest.mark.real_data
def test_fashion_mnist_is_learned() -> None:
    config = RunConfig.with_recipe(task="fashion-mnist", model="ann", device="cpu")
    result = training.run(config)
    assert (len(result.history), config.batch_size) == (5, 64)
    assert 0.86 < result.test_accuracy < 0.89


@pytest.mark.sim
def test_the_fast_setting_runs_on_the_simulated_accelerator() -> None:
    fast: dict[str, Any] = {"fast": True, "task": "sprites", "model": "ann"}
    config = RunConfig.with_recipe(**fast, epochs=1, mirror=True)
    there = training.run(replace(config, device="sim"))
    here = training.run(replace(config, device="cpu", half=False))
    assert losses(there) == losses(here)  # it has no bfloat16
    assert there.test_accuracy == here.test_accuracy


@pytest.mark.real_data
def test_the_fast_setting_is_as_good() -> None:
    result = training.run(RunConfig.with_recipe(fast=True, device="cpu"))
    assert result.test_accuracy is not None
    assert result.test_accuracy >= 0.875
