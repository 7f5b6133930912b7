"""A training run. Its loops are in core.loops; core.run is its command line."""

import linecache
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from core import devices, loops, loss_functions, models, state_dict
from core.config import RECIPES, RunConfig
from core.data import curve, datasets, feeds
from core.folders import ROOT
from core.measure.processors import ProcessorMeter
from core.results import (
    DRAWN_STEPS,
    FIRST_STEPS,
    WALL,
    Crossing,
    Epoch,
    Fit,
    LossPoint,
    RunResult,
    Started,
    StepProgress,
    Traffic,
)
from core.steering import Steering
from core.watch import UNWATCHED, Watch
from to_device.errors import ExplainedError
from to_device.names import SIMULATED
from to_device.sim import ledger

TRAIN_SAMPLE = 10_000  # training images to evaluate per epoch: as many as test images
REPORT_SECONDS = 0.1  # at most ten reports per second, however fast the loop is


class Training:
    def __init__(
        self,
        config: RunConfig,
        split: datasets.Split | None = None,
        steps: int | None = None,
    ) -> None:
        """Make the model on the device, its optimizer, and its batches, from the seed.

        Without `split`, the run trains on the whole training set; without `steps`, the
        learning rate's schedule lasts for all epochs. Raises ExplainedError if the
        device or the data is missing.
        """
        self.config = config
        self.device = device = devices.resolve(config.device)
        split = datasets.load(config.task).train if split is None else split

        torch.manual_seed(config.seed)
        self.model = models.of_run(config, split.images).to(device)
        smoothing = config.label_smoothing
        self.criterion = loss_functions.build(config.criterion, smoothing).to(device)
        # A criterion's own parameters are trained together with the weights.
        learned = nn.ModuleList([self.model, self.criterion])
        self.optimizer = make_optimizer(learned, config, device)
        self.feed = feeds.make(
            config.feed,
            split,
            config.batch_size,
            device,
            config.seed,
            config.augment,
            config.num_workers,
            config.pin_memory,
            config.non_blocking,
        )
        self.steps = len(self.feed) * config.epochs if steps is None else steps
        self.scheduler = make_scheduler(self.optimizer, config, self.steps)
        self.epoch = 0  # epochs trained so far

    def train_epoch(self, feed: loops.Batches | None = None) -> Iterator[Tensor]:
        """Train on each batch of `feed`, or of self.feed; yields each step's loss."""
        yield from loops.train_epoch(
            self.model,
            self.feed if feed is None else feed,
            self.criterion,
            self.optimizer,
            self.device,
            self.scheduler,
        )
        self.epoch += 1

    def in_order(self, split: datasets.Split) -> loops.Batches:
        """The split for `evaluate`."""
        # On a CPU, the CNN's features of 125 images stay in the cache. Runs without
        # `half` have always had 1,000, and other sizes may round differently.
        few = self.config.half and self.device.type == "cpu"
        return feeds.in_order(split, self.device, batch_size=125 if few else 1000)

    def evaluate(
        self, feed: loops.Batches
    ) -> tuple[loops.Score | loops.RegressionScore, dict[str, Any]]:
        """Return the score on `feed` and, for images, `wall` and `percent` of Epoch.

        These are the predicted classes of the first WALL images, and their percentages.
        """
        outputs, targets = loops.predict(self.model, feed, self.device)
        if not self.config.has_images:
            return loops.score_regression(outputs, targets, self.criterion), {}
        first = outputs[:WALL]
        percent = (100 * first.softmax(dim=1)).round().byte().flatten().tolist()
        wall = {"wall": tuple(first.argmax(dim=1).tolist()), "percent": bytes(percent)}
        return loops.score(outputs, targets, self.criterion), wall

    def state_dict(self) -> dict[str, Any]:
        """Everything that the rest of the training depends on.

        The weights alone are not enough: the optimizer has moments, the schedule
        has a position, and the random generators decide the order of the images,
        the flips, and the dropout.
        """
        assert self.feed.order.generator is not None
        state = {
            "epoch": self.epoch,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "order": self.feed.order.generator.get_state(),
            "random": torch.get_rng_state(),
        }
        if self.criterion.state_dict():  # the criterion has parameters
            state["criterion"] = self.criterion.state_dict()
        if self.scheduler is not None:
            state["scheduler"] = self.scheduler.state_dict()
        if self.device.type != "cpu":  # dropout draws on the device
            random = torch.get_device_module(self.device)
            state["device_random"] = random.get_rng_state()
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state_dict. Its tensors must be on the host."""
        self.epoch = state["epoch"]
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        assert self.feed.order.generator is not None
        self.feed.order.generator.set_state(state["order"])
        torch.set_rng_state(state["random"])
        if "criterion" in state:
            self.criterion.load_state_dict(state["criterion"])
        if self.scheduler is not None:
            self.scheduler.load_state_dict(state["scheduler"])
        if "device_random" in state:
            random = torch.get_device_module(self.device)
            random.set_rng_state(state["device_random"])


def make_optimizer(
    model: nn.Module, config: RunConfig, device: torch.device
) -> torch.optim.Optimizer:
    """AdamW. Where the device can, one kernel updates all parameters (`fused`)."""
    return torch.optim.AdamW(
        model.parameters(),
        config.learning_rate,
        weight_decay=config.weight_decay,
        fused=device.type in ("cpu", "cuda", SIMULATED),
    )


def make_scheduler(
    optimizer: torch.optim.Optimizer, config: RunConfig, steps: int
) -> torch.optim.lr_scheduler.LRScheduler | None:
    """A one-cycle schedule: the learning rate climbs to a peak, then falls to nearly 0.

    None if `config` asks for a constant rate.
    """
    if config.schedule == "constant":
        return None
    return torch.optim.lr_scheduler.OneCycleLR(
        optimizer,
        max_lr=config.learning_rate,
        total_steps=max(steps, 5),  # with 4, torch divides by zero
        pct_start=0.25,
    )


class LossMeter:
    """Fetches losses from the device in bulk, and keeps some of them for a chart."""

    def __init__(
        self, training: Training, images: int, report: Callable[[StepProgress], None]
    ) -> None:
        """`images` is how many images an epoch has."""
        config, self.device = training.config, training.device
        self.images, self.batch_size = images, config.batch_size
        self.total_steps = training.steps
        self.stride = math.ceil(training.steps / DRAWN_STEPS)
        self.rate = config.learning_rate
        self.recipe_rate = RECIPES[config.model]["learning_rate"]
        self.report = report
        self.step = 0
        self.drawn: list[LossPoint] = []  # all points for the chart so far
        self.trained = 0.0  # seconds of the epochs that have ended
        self.traffic: Traffic | None = None
        self.began = time.perf_counter()

    def begin_epoch(self) -> None:
        self.pending: list[Tensor] = []  # losses that are still on the device
        self.epoch_losses: list[float] = []
        devices.synchronize(self.device)
        self.epoch_began = self.fetched = time.perf_counter()
        self.counted = ledger.counts.since(ledger.Counts())

    def add(self, loss: Tensor) -> None:
        """Count a step; its loss stays on the device until the next report is due."""
        self.step += 1
        self.pending.append(loss)
        if self.step == 1 or time.perf_counter() - self.fetched > REPORT_SECONDS:
            self.fetch()

    def fetch(self) -> None:
        """Fetch all pending losses in one transfer, check them, and report them."""
        if not self.pending:
            return
        values = torch.stack(self.pending).tolist()
        self.pending.clear()
        self.epoch_losses.extend(values)
        now = time.perf_counter()
        drawn = []
        for index, value in enumerate(values, 1):
            step = self.step - len(values) + index
            self.check(value, step)
            is_end = step <= FIRST_STEPS or step == self.total_steps
            if is_end or step % self.stride == 0:
                # Steps between two readings of the clock count as equally long.
                passed = self.fetched + (now - self.fetched) * index / len(values)
                seconds = self.trained + passed - self.epoch_began
                drawn.append(LossPoint(step, seconds, value))
        self.fetched = now
        self.drawn.extend(drawn)
        samples = min(len(self.epoch_losses) * self.batch_size, self.images)
        speed = samples / (now - self.epoch_began)
        if self.device.type == SIMULATED:
            counts = ledger.counts.since(self.counted)
            self.traffic = traffic(counts, len(self.epoch_losses))
        self.report(
            StepProgress(self.step, tuple(drawn), speed, now - self.began, self.traffic)
        )

    def end_epoch(self) -> tuple[float, float]:
        """Return the mean loss over the epoch's images, and its duration in seconds."""
        self.fetch()
        devices.synchronize(self.device)
        seconds = time.perf_counter() - self.epoch_began
        self.trained += seconds
        return epoch_mean(self.epoch_losses, self.batch_size, self.images), seconds

    def leave_out(self, seconds: float) -> None:
        """Leave a pause of `seconds` out of all measured times."""
        self.began += seconds
        self.epoch_began += seconds
        self.fetched += seconds

    def check(self, loss: float, step: int) -> None:
        """Raise ExplainedError if the loss is NaN or infinite."""
        if not math.isfinite(loss):
            advised = min(self.rate / 10, self.recipe_rate)
            raise ExplainedError(
                f"The loss became {loss} at step {step:,}: the weights have "
                f"overflowed. Try a learning rate of {advised:g} or less."
            )


def traffic(counts: ledger.Counts, steps: int) -> Traffic:
    """The copies and waits that each line of this project caused in `steps` steps."""

    def at(place: tuple[str, int], counter: Counter[ledger.Event], kind: str) -> int:
        return sum(n for e, n in counter.items() if e[1:] == place and kind in e.what)

    crossing = (event for event in counts.copies if event.what != ledger.WITHIN)
    places = sorted({event[1:] for event in (*crossing, *counts.waits)})
    return Traffic(
        steps,
        tuple(
            Crossing(
                Path(place[0]).relative_to(ROOT).as_posix(),
                place[1],
                linecache.getline(*place).strip(),
                to_device=at(place, counts.copied, ledger.TO_DEVICE),
                to_host=at(place, counts.copied, ledger.TO_HOST),
                waits=at(place, counts.waits, ""),
            )
            for place in places
            if Path(place[0]).is_relative_to(ROOT)  # not in PyTorch's own files
        ),
    )


def epoch_mean(losses: list[float], batch_size: int, images: int) -> float:
    """The mean over an epoch's images, from the batches' losses.

    The last batch may be smaller than `batch_size`, and so weigh less.
    """
    last = images - batch_size * (len(losses) - 1)
    return (math.fsum(losses[:-1]) * batch_size + losses[-1] * last) / images


def run(config: RunConfig, watch: Watch = UNWATCHED) -> RunResult:
    """Train and evaluate as `config` says, and return the result.

    `watch` gets the reports: Started, StepProgress, Epoch, and Fit. Between two steps,
    the run follows `watch.control`, and reports Change and Pause. Raises CancelledError
    within one batch after a cancel, and ExplainedError for problems that the run's
    owner can solve.
    """
    training = Training(config)
    device, dataset = training.device, datasets.load(config.task)
    images = len(dataset.train)
    train_sample = training.in_order(dataset.train.first(TRAIN_SAMPLE))
    test = training.in_order(dataset.test)
    environment = devices.environment(device)
    parameters = models.count_parameters(training.model)
    steps = training.steps
    watch.report(Started(environment, parameters, steps, images, len(dataset.test)))
    meter = LossMeter(training, images, watch.report)
    processors = ProcessorMeter()
    steering = Steering(training.optimizer, config.learning_rate, watch)
    history: list[Epoch] = []
    fit, fit_due = None, 0.0
    for number in range(1, config.epochs + 1):
        meter.begin_epoch()
        processors.begin()
        for loss in training.train_epoch(watch.until_cancelled(training.feed)):
            if config.item_each_step:
                loss.item()  # makes the host wait for the device at each step
            meter.add(loss)
            if steering.is_due and meter.step < steps:
                meter.fetch()
                meter.leave_out(steering.apply(meter.step))
                meter.rate = steering.rate
        mean_loss, seconds = meter.end_epoch()
        own, others = processors.end(seconds) or (None, None)

        train_score, _ = training.evaluate(watch.until_cancelled(train_sample))
        test_score, wall = training.evaluate(watch.until_cancelled(test))
        meter.check(train_score.loss, meter.step)  # only this shows overflowed weights
        meter.check(test_score.loss, meter.step)
        epoch = Epoch(
            epoch=number,
            step=meter.step,
            loss=mean_loss,
            seconds=seconds,
            samples_per_second=images / seconds,
            own_processors=own,
            others_share=others,
            **figures("train", train_score),
            **figures("test", test_score),
            **wall,
        )
        history.append(epoch)
        watch.report(epoch)
        ended = number == config.epochs
        if not config.has_images and (ended or time.perf_counter() > fit_due):
            fit = fit_now(training, meter.step)
            watch.report(fit)
            fit_due = time.perf_counter() + REPORT_SECONDS

    return RunResult(
        config=config,
        environment=environment,
        parameters=parameters,
        history=tuple(history),
        losses=tuple(meter.drawn),
        test_correct=getattr(test_score, "correct", None),
        test_total=test_score.total,
        seconds=time.perf_counter() - meter.began,
        checkpoint=state_dict.save(training.model),
        fit=fit,
        traffic=meter.traffic,
        changes=tuple(steering.changes),
    )


def figures(split: str, score: loops.Score | loops.RegressionScore) -> dict[str, Any]:
    """A score as keyword arguments of Epoch; `split` is "train" or "test"."""
    names = ("accuracy",) if isinstance(score, loops.Score) else ("r2", "rmse")
    return {f"{split}_{name}": getattr(score, name) for name in ("loss", *names)}


def fit_now(training: Training, step: int) -> Fit:
    x = torch.tensor(curve.POSITIONS).view(-1, 1)
    outputs, _ = loops.predict(training.model, [(x, x)], training.device)
    noise = loss_functions.learned_noise(training.criterion)
    return Fit(step, tuple(outputs.flatten().tolist()), noise)
