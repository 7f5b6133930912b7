"""Training that is interrupted and resumed, compared with training without a break."""

import time
from dataclasses import replace
from itertools import count

import torch
from torch import Tensor

from core import devices, state_dict
from core.config import RunConfig
from core.data import datasets
from core.lessons.checkpoints.checkpoints_result import (
    RESUME_IMAGES,
    PartLosses,
    Resumed,
)
from core.training import REPORT_SECONDS, Training
from core.watch import UNWATCHED, Watch


def compare(config: RunConfig, watch: Watch = UNWATCHED) -> Resumed:
    """Train without a break, and once more with a break after half of the epochs.

    After the break, the second half is trained twice: from the whole checkpoint, and
    from its weights alone. `config.epochs` must be even, and an epoch has RESUME_IMAGES
    images. Reports PartLosses every REPORT_SECONDS.
    """
    assert config.epochs % 2 == 0
    config = replace(config, feed="memory")
    split = datasets.load(config.task).train.first(RESUME_IMAGES)
    half = config.epochs // 2

    through = Training(config, split)
    expected = train("through", through, config.epochs, 1, watch)

    interrupted = Training(config, split)
    first_half = train("resumed", interrupted, half, 1, watch)
    file = state_dict.pack(interrupted.state_dict())
    del interrupted  # only the file is left of the first half
    at_step = len(first_half)

    resumed = Training(config, split)
    checkpoint = state_dict.unpack(file)
    resumed.load_state_dict(checkpoint)
    rest = train("resumed", resumed, config.epochs, at_step + 1, watch)

    forgetful = Training(config, split)
    forgetful.model.load_state_dict(state_dict.unpack(file)["model"])
    forgetful.epoch = half
    others = train("weights", forgetful, config.epochs, at_step + 1, watch)

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


def train(
    part: str, training: Training, last: int, first_step: int, watch: Watch
) -> list[float]:
    """Train to the end of epoch `last`; return the losses of all steps.

    Every REPORT_SECONDS, the new losses are fetched from the device and reported.
    """
    losses: list[float] = []
    pending: list[Tensor] = []  # losses that are still on the device
    fetched = time.perf_counter()

    def fetch() -> None:
        values = torch.stack(pending).tolist()
        pending.clear()
        steps = count(first_step + len(losses))
        watch.report(PartLosses(part, tuple(zip(steps, values, strict=False))))
        losses.extend(values)

    while training.epoch < last:
        for loss in watch.until_cancelled(training.train_epoch()):
            pending.append(loss)
            if time.perf_counter() - fetched > REPORT_SECONDS:
                fetch()
                fetched = time.perf_counter()
    if pending:
        fetch()
    return losses


def _greatest(some: list[float], others: list[float]) -> float:
    return max(abs(a - b) for a, b in zip(some, others, strict=True))
