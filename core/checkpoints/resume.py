"""Training interrupted and resumed, beside training that was not interrupted.

What has to be in the checkpoint for that is in core.training.Training.state_dict.
"""

import time
from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from core import devices, state_dict
from core.checkpoints.results import RESUME_IMAGES, PartLosses, Resumed
from core.config import RunConfig
from core.data import datasets
from core.loss_meter import REPORT_SECONDS
from core.training import Training
from core.watch import UNWATCHED, Watch


def compare(config: RunConfig, watch: Watch = UNWATCHED) -> Resumed:
    """Train through, and once more with an interruption after half of the epochs.

    The second half is trained twice: from all of the checkpoint, and from its weights
    alone. `config.epochs` is even, and an epoch has RESUME_IMAGES images. Reports
    PartLosses now and then.
    """
    assert config.epochs % 2 == 0
    config = replace(config, feed="memory")
    split = datasets.load(config.task).train.first(RESUME_IMAGES)
    half = config.epochs // 2

    def train(part: str, training: Training, last: int, first_step: int) -> list[float]:
        """Train up to and with epoch `last`; returns the losses of all steps."""
        return list(
            reported(part, watch.each(epochs(training, last)), first_step, watch)
        )

    through = Training(config, split)
    expected = train("through", through, config.epochs, 1)

    interrupted = Training(config, split)
    first_half = train("resumed", interrupted, half, 1)
    file = state_dict.pack(interrupted.state_dict())
    del interrupted  # all that is left of it is the file
    at_step = len(first_half)

    resumed = Training(config, split)
    checkpoint = state_dict.unpack(file)
    resumed.load_state_dict(checkpoint)
    rest = train("resumed", resumed, config.epochs, at_step + 1)

    forgetful = Training(config, split)
    forgetful.model.load_state_dict(state_dict.unpack(file)["model"])
    forgetful.epoch = half
    others = train("weights", forgetful, config.epochs, at_step + 1)

    weights = through.model.state_dict().values()
    pairs = list(zip(weights, resumed.model.state_dict().values(), strict=True))
    return Resumed(
        bytes=len(file),
        contents=tuple(checkpoint),
        steps=len(expected),
        epochs=config.epochs,
        at_step=at_step,
        greatest_loss_difference=_greatest(expected, first_half + rest),
        differing_weights=sum(int((a != b).sum()) for a, b in pairs),
        weights=sum(a.numel() for a, _ in pairs),
        weights_only_difference=_greatest(expected[at_step:], others),
        environment=devices.environment(through.device),
    )


def epochs(training: Training, last: int) -> Iterator[Tensor]:
    """Train up to and with epoch `last`; yields each loss, still on the device."""
    while training.epoch < last:
        yield from training.train_epoch()


def reported(
    part: str, losses: Iterator[Tensor], first_step: int, watch: Watch
) -> Iterator[float]:
    """The losses, fetched and reported in bulk every REPORT_SECONDS."""
    pending: list[Tensor] = []
    step, told = first_step, time.perf_counter()

    def fetch() -> list[float]:
        values = torch.stack(pending).tolist()
        pending.clear()
        numbers = range(step, step + len(values))
        watch.report(PartLosses(part, tuple(zip(numbers, values, strict=True))))
        return values

    for loss in losses:
        pending.append(loss)
        if time.perf_counter() - told > REPORT_SECONDS:
            values = fetch()
            step += len(values)
            yield from values
            told = time.perf_counter()
    if pending:
        yield from fetch()


def _greatest(some: list[float], others: list[float]) -> float:
    return max(abs(a - b) for a, b in zip(some, others, strict=True))
