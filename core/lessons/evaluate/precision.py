"""Time the same predictions in float32, TF32 and bfloat16, and compare them."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor, nn

from core import devices, loops, state_dict
from core.config import RunConfig
from core.data import datasets, feeds
from core.lessons.evaluate.evaluate_result import PrecisionCost
from core.measure import timing
from core.watch import UNWATCHED, Watch

FLOAT32, TF32, BFLOAT16 = "float32", "TF32", "bfloat16"
REPEATS = 5


def compare(
    checkpoint: bytes, config: RunConfig, watch: Watch = UNWATCHED
) -> tuple[PrecisionCost, ...]:
    """Time each precision on the test set; count the changed predictions."""
    device = devices.resolve("auto")
    config = replace(config, half=False)  # this model computes in each precision
    model = state_dict.load_run(checkpoint, config, device)
    test = datasets.load(config.task).test
    feed = feeds.in_order(test, device, "device")
    works, predictions = {}, dict[str, Tensor]()
    for name in precisions(device):
        work = watch.unless_cancelled(partial(answers, model, feed, device, name))
        with suppress(RuntimeError, TypeError):  # not every device has bfloat16
            predictions[name] = work()
            works[name] = work
    targets = test.labels.to(device)
    timings = timing.measure_side_by_side(list(works.values()), device, REPEATS)
    return tuple(
        PrecisionCost(
            name,
            seconds,
            int((predictions[name] != predictions[FLOAT32]).sum()),
            int((predictions[name] == targets).sum()),
            len(test),
            devices.environment(device),
        )
        for name, seconds in zip(works, timings, strict=True)
    )


def precisions(device: torch.device) -> list[str]:
    """The precisions to time; TF32 only on NVIDIA GPUs, which have it since Ampere."""
    nvidia = device.type == "cuda" and torch.version.cuda
    if nvidia and torch.cuda.get_device_capability(device) >= (8, 0):
        return [FLOAT32, TF32, BFLOAT16]
    return [FLOAT32, BFLOAT16]


def answers(
    model: nn.Module, feed: loops.Batches, device: torch.device, precision: str
) -> Tensor:
    """Predict in this precision; return the predicted classes, int64 (N,)."""
    with ExitStack() as within:
        within.enter_context(tf32(precision == TF32))
        if precision == BFLOAT16:
            within.enter_context(torch.autocast(device.type, torch.bfloat16))
        outputs, _ = loops.predict(model, feed, device)
    return outputs.argmax(dim=1)


@contextmanager
def tf32(allowed: bool) -> Iterator[None]:
    """In the block, allow or forbid TF32 in matrix products and convolutions.

    By default, PyTorch allows TF32 in convolutions, not in matrix products.
    """
    matmul, conv = torch.backends.cuda.matmul, torch.backends.cudnn
    before = matmul.allow_tf32, conv.allow_tf32
    matmul.allow_tf32 = conv.allow_tf32 = allowed
    try:
        yield
    finally:
        matmul.allow_tf32, conv.allow_tf32 = before
