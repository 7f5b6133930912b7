"""How to time device work honestly: warm up, synchronize, repeat, take the median.

A device works through a queue, and the call that queues the work returns at once. Who
looks at the clock without waiting for the device measures the queueing.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from core import devices


@dataclass(frozen=True)
class Timing:
    """The seconds of each counted repeat, in the order they were taken."""

    seconds: tuple[float, ...]

    @property
    def n(self) -> int:
        return len(self.seconds)

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def spread(self) -> tuple[float, float]:
        """Least and most seconds."""
        return min(self.seconds), max(self.seconds)


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
    """Time works in turn, A B A B, so that a drift of the machine hits all."""
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
