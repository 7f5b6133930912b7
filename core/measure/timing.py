"""Time device work honestly: warm up, synchronize, repeat.

A device works through a queue, and the call that queues the work returns at once. So a
clock that doesn't wait for the device measures only the queueing.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from core import devices


@dataclass(frozen=True)
class Timing:
    """The seconds of each counted repeat, in the order they were taken."""

    seconds: tuple[float, ...]


def measure(
    work: Callable[[], object],
    device: torch.device,
    repeats: int = 5,
    warmup: int = 1,
) -> Timing:
    """Time `work` on `device`; the first `warmup` calls are not counted."""
    (timing,) = measure_side_by_side([work], device, repeats, warmup)
    return timing


def measure_side_by_side(
    works: Sequence[Callable[[], object]],
    device: torch.device,
    repeats: int = 5,
    warmup: int = 1,
    synchronize: Callable[[torch.device], None] = devices.synchronize,
) -> list[Timing]:
    """Time works in turn, A B A B, so that the machine's drift affects all."""
    seconds: list[list[float]] = [[] for _ in works]
    for repeat in range(warmup + repeats):
        for work, taken in zip(works, seconds, strict=True):
            synchronize(device)
            start = time.perf_counter()
            work()
            synchronize(device)
            if repeat >= warmup:
                taken.append(time.perf_counter() - start)
    return [Timing(tuple(taken)) for taken in seconds]
