"""Time device work honestly: warm up, synchronize, repeat.

A device works through a queue, and the call that queues the work returns at once. So a
clock that doesn't wait for the device measures only the queueing.
"""

import time
from collections.abc import Callable, Sequence

import torch

from core import devices


def measure(
    work: Callable[[], object],
    device: torch.device,
    repeats: int = 5,
    warmup: int = 1,
) -> tuple[float, ...]:
    """The seconds of each repeat of `work` on `device`.

    The first `warmup` calls are not counted.
    """
    (seconds,) = measure_side_by_side([work], device, repeats, warmup)
    return seconds


def measure_side_by_side(
    works: Sequence[Callable[[], object]],
    device: torch.device,
    repeats: int = 5,
    warmup: int = 1,
) -> list[tuple[float, ...]]:
    """Time the functions in turn, so that a slowdown affects all of them."""
    seconds: list[list[float]] = [[] for _ in works]
    for repeat in range(warmup + repeats):
        for work, readings in zip(works, seconds, strict=True):
            devices.synchronize(device)
            start = time.perf_counter()
            work()
            devices.synchronize(device)
            if repeat >= warmup:
                readings.append(time.perf_counter() - start)
    return [tuple(readings) for readings in seconds]
