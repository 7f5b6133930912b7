"""The losses of a run: fetched from the device in bulk, and thinned for a chart."""

import math
import time
from collections.abc import Callable

import torch
from torch import Tensor

from core import devices
from core.config import RECIPES, RunConfig
from core.errors import ExplainedError
from core.results import DRAWN_STEPS, FIRST_STEPS, LossPoint, StepProgress

REPORT_SECONDS = 0.1  # at most ten reports a second, however fast the loop goes


class NonFiniteLossError(ExplainedError):
    """The loss became NaN or infinite."""


class LossMeter:
    """Takes each step's loss as a tensor, and reports at most ten times a second."""

    def __init__(
        self,
        device: torch.device,
        config: RunConfig,
        images: int,
        total_steps: int,
        report: Callable[[StepProgress], None],
    ) -> None:
        self.device = device
        self.images, self.batch_size = images, config.batch_size
        self.total_steps = total_steps
        self.stride = math.ceil(total_steps / DRAWN_STEPS)
        # To try if the weights overflow.
        recipe = RECIPES[config.model]["learning_rate"]
        self.advised_rate = min(config.learning_rate / 10, recipe)
        self.report = report
        self.step = 0
        self.drawn: list[LossPoint] = []  # all points for the chart so far
        self.trained = 0.0  # seconds of the epochs that have ended
        self.began = time.perf_counter()

    def begin_epoch(self) -> None:
        self.pending: list[Tensor] = []  # losses that are still on the device
        self.epoch_losses: list[float] = []
        devices.synchronize(self.device)
        self.epoch_began = self.fetched = time.perf_counter()

    def add(self, loss: Tensor) -> None:
        """Count a step; `loss` () stays on the device until the next report is due."""
        self.step += 1
        self.pending.append(loss)
        if self.step == 1 or time.perf_counter() - self.fetched > REPORT_SECONDS:
            self.fetch()

    def fetch(self) -> None:
        """Fetch the pending losses, all in one transfer, check and report them."""
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
                # Between two readings of the clock, steps count as equally long.
                passed = self.fetched + (now - self.fetched) * index / len(values)
                seconds = self.trained + passed - self.epoch_began
                drawn.append(LossPoint(step, seconds, value))
        self.fetched = now
        self.drawn.extend(drawn)
        samples = min(len(self.epoch_losses) * self.batch_size, self.images)
        speed = samples / (now - self.epoch_began)
        self.report(StepProgress(self.step, tuple(drawn), speed, now - self.began))

    def end_epoch(self) -> tuple[float, float]:
        """Mean loss over the images of this epoch, and its seconds."""
        if self.pending:
            self.fetch()
        devices.synchronize(self.device)
        seconds = time.perf_counter() - self.epoch_began
        self.trained += seconds
        return epoch_mean(self.epoch_losses, self.batch_size, self.images), seconds

    def check(self, loss: float, step: int) -> None:
        """Raise NonFiniteLossError for NaN or infinity."""
        if not math.isfinite(loss):
            raise NonFiniteLossError(
                f"The loss became {loss} at step {step:,}: the weights have "
                f"overflowed. Try a learning rate of {self.advised_rate:g} or less."
            )


def epoch_mean(losses: list[float], batch_size: int, images: int) -> float:
    """Mean over images of the losses of steps, whose last batch may be smaller."""
    last = images - batch_size * (len(losses) - 1)
    return (math.fsum(losses[:-1]) * batch_size + losses[-1] * last) / images
