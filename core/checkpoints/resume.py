"""A checkpoint from which training goes on as if it had never been interrupted.

The weights alone are not enough: the optimizer has moments, the schedule has a place,
and the random numbers that are still to be drawn decide the order of the images, the
flips and the dropout.
"""

import io
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from core import devices, loops, models, run
from core.checkpoints.results import RESUME_IMAGES, PartLosses, Resumed
from core.config import RunConfig
from core.data import batches, datasets
from core.errors import CancelledError
from core.loss_meter import REPORT_SECONDS


class Training:
    """A training that can be put into a file after an epoch, and taken out again."""

    def __init__(self, config: RunConfig, device: torch.device) -> None:
        """As a run begins: weights and orders drawn from the seed."""
        torch.manual_seed(config.seed)
        self.device = device
        self.model = models.build(config.model).to(device)
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = run.make_optimizer(self.model, config, device)
        split = datasets.load(config.task).train.first(RESUME_IMAGES)
        self.order = batches.EpochOrder(len(split), config.seed, config.augment)
        self.feed = batches.TensorBatches(split, config.batch_size, self.order)
        self.scheduler = run.make_scheduler(
            self.optimizer, config, len(self.feed) * config.epochs
        )
        self.epoch = 0

    def train(self, epochs: int) -> Iterator[Tensor]:
        """Yields each loss, still on the device."""
        for _ in range(epochs):
            yield from loops.train_epoch(
                self.model,
                self.feed,
                self.criterion,
                self.optimizer,
                self.device,
                self.scheduler,
            )
            self.epoch += 1


def save(training: Training) -> bytes:
    """All that the rest of the training depends on, in one file."""
    assert training.order.generator is not None
    checkpoint = {
        "epoch": training.epoch,
        "model": training.model.state_dict(),
        "optimizer": training.optimizer.state_dict(),
        "order": training.order.generator.get_state(),
        "random": torch.get_rng_state(),
    }
    if training.scheduler is not None:
        checkpoint["scheduler"] = training.scheduler.state_dict()
    if training.device.type != "cpu":  # dropout draws there
        random = torch.get_device_module(training.device)
        checkpoint["device_random"] = random.get_rng_state()
    buffer = io.BytesIO()
    torch.save(checkpoint, buffer)
    return buffer.getvalue()


def load(file: bytes, training: Training) -> dict[str, Any]:
    """Put a new training where the saved one was; returns what was in it."""
    opened = io.BytesIO(file)
    checkpoint = torch.load(opened, map_location="cpu", weights_only=True)
    training.epoch = checkpoint["epoch"]
    training.model.load_state_dict(checkpoint["model"])
    training.optimizer.load_state_dict(checkpoint["optimizer"])
    assert training.order.generator is not None
    training.order.generator.set_state(checkpoint["order"])
    torch.set_rng_state(checkpoint["random"])
    if training.scheduler is not None:
        training.scheduler.load_state_dict(checkpoint["scheduler"])
    if "device_random" in checkpoint:
        random = torch.get_device_module(training.device)
        random.set_rng_state(checkpoint["device_random"])
    return checkpoint


def load_weights_alone(file: bytes, training: Training) -> None:
    """What is often done, and is not resuming."""
    opened = io.BytesIO(file)
    checkpoint = torch.load(opened, map_location="cpu", weights_only=True)
    training.model.load_state_dict(checkpoint["model"])


def compare(
    config: RunConfig,
    report: Callable[[PartLosses], None] = lambda _: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Resumed:
    """Train through, and once more with an interruption after half of the epochs.

    The second half is trained twice: from all of the checkpoint, and from its weights
    alone. `config.epochs` is even, and an epoch has RESUME_IMAGES images.
    """
    assert config.epochs % 2 == 0
    device = devices.resolve(config.device)
    half = config.epochs // 2

    def watch(part: str, training: Training, epochs: int, first: int) -> list[float]:
        """Train, reporting the losses now and then; returns them all."""
        pending: list[Tensor] = []
        losses: list[float] = []
        told = time.perf_counter()

        def tell() -> None:
            values = torch.stack(pending).tolist()
            numbers = range(first + len(losses), first + len(losses) + len(values))
            losses.extend(values)
            pending.clear()
            report(PartLosses(part, tuple(zip(numbers, values, strict=True))))

        for loss in training.train(epochs):
            if cancelled():
                raise CancelledError
            pending.append(loss)
            if time.perf_counter() - told > REPORT_SECONDS:
                tell()
                told = time.perf_counter()
        if pending:
            tell()
        return losses

    through = Training(config, device)
    expected = watch("through", through, config.epochs, 1)

    interrupted = Training(config, device)
    first_half = watch("resumed", interrupted, half, 1)
    file = save(interrupted)
    del interrupted  # all that is left of it is the file

    resumed = Training(config, device)
    contents = load(file, resumed)
    rest = watch("resumed", resumed, config.epochs - half, len(first_half) + 1)

    forgetful = Training(config, device)
    load_weights_alone(file, forgetful)
    others = watch("weights", forgetful, config.epochs - half, len(first_half) + 1)

    pairs = list(
        zip(
            through.model.state_dict().values(),
            resumed.model.state_dict().values(),
            strict=True,
        )
    )
    return Resumed(
        bytes=len(file),
        contents=tuple(contents),
        steps=len(expected),
        epochs=config.epochs,
        at_step=len(first_half),
        greatest_loss_difference=_greatest(expected, first_half + rest),
        differing_weights=sum(int((a != b).sum()) for a, b in pairs),
        weights=sum(a.numel() for a, _ in pairs),
        weights_only_difference=_greatest(expected[len(first_half) :], others),
        environment=devices.environment(device),
    )


def _greatest(some: list[float], others: list[float]) -> float:
    return max(abs(a - b) for a, b in zip(some, others, strict=True))
