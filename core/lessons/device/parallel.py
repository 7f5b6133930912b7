"""Time multiplications that are independent, and a chain that can't run in parallel.

A GPU is fast because it does many independent multiplications at the same time. In a
chain, each multiplication needs the result of the one before.
"""

import os
import platform
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any

import torch
from torch import Tensor

from core import devices
from core.jobs import child_process
from core.lessons.device.parallel_result import (
    AT_ONCE,
    IN_TURN,
    SHORT_VECTORS,
    Multiplications,
    Multiplied,
)
from core.measure import timing
from core.measure.environment import now
from core.watch import UNWATCHED, Watch

LOOP_SIZE = 32  # rows of the matrices that Python multiplies: 32³ multiplications
SIZE, DEVICE_SIZE = 1024, 8192  # rows for torch, on the CPU and on an accelerator
CHAIN = 1000  # multiplications
WARM_UP, REPEATS = 2, 15  # turns: those that don't count, and those that do
CPU = torch.device("cpu")

Matrix = list[list[float]]
Way = tuple[str, str, int, torch.device, int, Callable[[], Any]]


def python_loop(a: Matrix, b: Matrix) -> Matrix:
    """The product of two matrices, one multiplication after the other."""
    columns = list(zip(*b, strict=True))
    product = []
    for row in a:
        sums = []
        for column in columns:
            total = 0.0
            for x, y in zip(row, column, strict=True):
                total += x * y
            sums.append(total)
        product.append(sums)
    return product


def at_once(a: Tensor, b: Tensor) -> Tensor:
    """A product of matrices: no multiplication needs another's result."""
    return a @ b


def in_turn(value: Any, factor: Any) -> Any:
    """A chain: each multiplication needs the result of the one before."""
    for _ in range(CHAIN):
        value = value * factor
    return value


def with_short_vectors(side: int) -> list[float]:
    """Seconds of each product on one core, with vectors of four numbers (SSE2).

    Run this in a separate process, since MKL reads MKL_CBWR only once.
    """
    os.environ["MKL_CBWR"] = "COMPATIBLE"
    a = torch.rand(side, side)
    with devices.cpu_threads(1):
        return list(timing.measure(lambda: at_once(a, a), CPU, REPEATS, WARM_UP))


def measure(
    device_name: str, watch: Watch = UNWATCHED, size: int | None = None
) -> Multiplications:
    """Time a multiplication in each of the `ways`. Reports each Multiplied."""
    device = devices.resolve(device_name)
    cores = devices.usable_cores()
    found: list[Multiplied] = []
    for _, of_work in groupby(ways(device, cores, size), key=itemgetter(0)):
        for multiplied in take_turns([*of_work], watch):
            found.append(multiplied)
            watch.report(multiplied)
    environment = devices.environment(device)
    return Multiplications(tuple(found), cores, environment, now(), took_turns=True)


def take_turns(ways: Sequence[Way], watch: Watch) -> Iterator[Multiplied]:
    """Time each way once in each turn, so that a slowdown affects all of them."""
    seconds = defaultdict[str, list[float]](list)
    for turn in range(WARM_UP + REPEATS):
        for _, way, threads, where, _, call in ways:
            watch.check()
            if way == SHORT_VECTORS:
                continue
            with devices.cpu_threads(threads) if threads else nullcontext():
                once = timing.measure(call, where, repeats=1, warmup=0)
            if turn >= WARM_UP:
                seconds[way] += once
    for work, way, _, where, count, call in ways:
        # Short vectors are timed in a process of their own, when the turns are over.
        totals = call() if way == SHORT_VECTORS else seconds[way]
        yield Multiplied(work, way, tuple(s / count for s in totals), where.type)


def ways(device: torch.device, cores: int, size: int | None) -> Iterator[Way]:
    """Each way to multiply: work, name, threads, device, multiplications, call.

    `threads` is 0 for a device that isn't the CPU.
    """
    small, count = torch.rand(LOOP_SIZE, LOOP_SIZE).tolist(), LOOP_SIZE**3
    yield AT_ONCE, "Python loop", 1, CPU, count, lambda: python_loop(small, small)
    side = size or SIZE
    a = torch.rand(side, side)
    if torch.backends.mkl.is_available() and platform.machine() in ("x86_64", "AMD64"):
        apart = partial(
            child_process.call, "core.lessons.device.parallel:with_short_vectors", side
        )
        yield AT_ONCE, SHORT_VECTORS, 1, CPU, side**3, apart
    yield AT_ONCE, "One core", 1, CPU, side**3, lambda: at_once(a, a)
    if cores > 1:
        yield AT_ONCE, f"{cores} cores", cores, CPU, side**3, lambda: at_once(a, a)
    accelerator = devices.backend(device)
    if device != CPU:
        large = size or DEVICE_SIZE
        there = torch.rand(large, large, device=device)
        yield AT_ONCE, accelerator, 0, device, large**3, lambda: at_once(there, there)
    yield IN_TURN, "Python loop", 1, CPU, CHAIN, lambda: in_turn(1.0, 1.000001)
    number = torch.ones(())
    yield IN_TURN, "One core", 1, CPU, CHAIN, lambda: in_turn(number, number)
    if device != CPU:
        x = number.to(device)
        yield IN_TURN, accelerator, 0, device, CHAIN, lambda: in_turn(x, x)
