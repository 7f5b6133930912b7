"""Time computing the same distances with a Python loop, with NumPy, and with torch.

Each method gets its points as lists, arrays or tensors on its device, and leaves the
distances there, so converting and copying are not timed.
"""

import math
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from torch import Tensor

from core import devices
from core.lessons.speed.vectorize_result import (
    NUMPY,
    PYTHON,
    TORCH,
    NumpyEnvironment,
    Vectorized,
    VectorizeLab,
)
from core.measure import timing
from core.measure.environment import Environment, now
from core.watch import UNWATCHED, Watch

MEANS = 10  # points to measure distances to, as if each were the mean of a class
REPEATS = {1: 200, 1_000: 30, 100_000: 5}  # readings for each number of points
CPU = torch.device("cpu")

Ways = dict[str, tuple[Callable[[], Any], torch.device]]


def python_loop(points, means):
    """Distances (n, k) from points (n, 2) to means (k, 2), all as lists."""
    distances = []
    for x, y in points:
        row = []
        for mean_x, mean_y in means:
            row.append(math.sqrt((x - mean_x) ** 2 + (y - mean_y) ** 2))
        distances.append(row)
    return distances


def with_numpy(points, means):
    """Distances of arrays, without a loop: (n, 1, 2) - (k, 2) is (n, k, 2)."""
    offsets = points[:, None] - means
    return np.sqrt((offsets**2).sum(axis=2))


def with_torch(points, means):
    """Distances of tensors, on their device and without a loop."""
    offsets = points[:, None] - means
    return (offsets**2).sum(dim=2).sqrt()


def measure(
    device_name: str, watch: Watch = UNWATCHED, repeats: dict[int, int] = REPEATS
) -> VectorizeLab:
    """Time the methods in turn, at each number of points. Reports each result."""
    device = devices.resolve_timed(device_name)
    torch.manual_seed(0)
    means = torch.rand(MEANS, 2)
    timings = []
    environments: dict[str, Environment] = {}
    for count, times in repeats.items():
        points = torch.rand(count, 2)
        expected = torch.tensor(python_loop(points.tolist(), means.tolist()))
        works = ways(points, means, device)
        seconds: dict[str, tuple[float, ...]] = dict.fromkeys(works, ())
        for _ in range(times):
            for way, (work, where) in works.items():
                watch.check()
                # timing.measure first makes a warm-up call, which is not counted.
                seconds[way] += timing.measure(work, where, repeats=1)
        for way, (work, where) in works.items():
            difference = float((torch.as_tensor(work()).cpu() - expected).abs().max())
            timings.append(Vectorized(way, count, seconds[way], difference, str(where)))
            watch.report(timings[-1])
            environments[way] = devices.environment(where)
    here = asdict(environments[NUMPY])
    environments[NUMPY] = NumpyEnvironment(**here, numpy=np.__version__)
    return VectorizeLab(tuple(timings), MEANS, environments, now())


def ways(points: Tensor, means: Tensor, device: torch.device) -> Ways:
    """For each method, a function that computes the distances, and its device."""
    lists = points.tolist(), means.tolist()
    arrays = points.numpy(), means.numpy()
    there = points.to(device), means.to(device)
    works: Ways = {
        PYTHON: (lambda: python_loop(*lists), CPU),
        NUMPY: (lambda: with_numpy(*arrays), CPU),
        TORCH: (lambda: with_torch(points, means), CPU),
    }
    if device != CPU:
        name = f"torch on {devices.backend(device)}"
        works[name] = (lambda: with_torch(*there), device)
    return works
