"""Measure a map of which device is faster at which batch size and model width.

A cell of the map is one size of a two-layer MLP, whose training step is timed on both
devices. The map is measured from coarse to fine, so that it covers the whole range of
sizes even if time runs out.
"""

import time
from collections.abc import Callable

import torch
from torch import nn

from core import devices
from core.errors import is_out_of_memory
from core.lessons.compare.candidates import Candidate, Pair
from core.lessons.compare.crossover_result import (
    BATCH_SIZES,
    WIDTHS,
    Cell,
    Crossover,
)
from core.measure import timing
from core.measure.environment import Environment, now
from core.watch import UNWATCHED, Watch

INPUTS, CLASSES = 784, 10  # the sizes of Fashion-MNIST
REPEATS = 5
READING_SECONDS = 0.004  # a reading repeats the step for about this long

Step = Callable[[], None]  # runs a training step


def measure(
    candidates: Pair,
    budget_seconds: float,
    watch: Watch = UNWATCHED,
    widths: tuple[int, ...] = WIDTHS,
    batch_sizes: tuple[int, ...] = BATCH_SIZES,
) -> Crossover:
    """Measure cells until the budget is spent; reports each Cell.

    If memory runs out in a cell, all cells with at least its width and batch size are
    left out. A cell that isn't finished in time is left out, too.
    """
    deadline = time.perf_counter() + budget_seconds
    environments: list[Environment] = []
    for candidate in candidates:
        with devices.cpu_threads(candidate.threads):
            device = devices.resolve_timed(candidate.device)
            environments.append(devices.environment(device))
    plan = coarse_to_fine(widths, batch_sizes)
    cells: list[Cell] = []
    too_large: list[tuple[int, int]] = []
    stopped = ""
    for width, batch_size in plan:
        if any(width >= w and batch_size >= b for w, b in too_large):
            continue
        try:
            cell = measure_cell(width, batch_size, candidates, deadline, watch)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            too_large.append((width, batch_size))
            place = f"width {width:,} and batch size {batch_size:,}"
            stopped = stopped or f"Memory ran out at {place}."
            continue
        if cell is None:
            break
        cells.append(cell)
        watch.report(cell)
    return Crossover(
        candidates,
        tuple(environments),
        tuple(cells),
        len(plan),
        budget_seconds,
        stopped,
        now(),
    )


def coarse_to_fine(
    widths: tuple[int, ...], batch_sizes: tuple[int, ...]
) -> list[tuple[int, int]]:
    """All pairs (width, batch size), in three passes from coarse to fine.

    The passes take every fourth width and batch size, then every second, then all. Each
    pass begins with the cells that have the least work.
    """
    plan: dict[tuple[int, int], None] = {}
    for stride in (4, 2, 1):
        level = [
            (w, b) for w in thin(widths, stride) for b in thin(batch_sizes, stride)
        ]
        plan.update(dict.fromkeys(sorted(level, key=lambda cell: cell[0] * cell[1])))
    return list(plan)


def thin(values: tuple[int, ...], stride: int) -> list[int]:
    """Every `stride`-th value, and the last one."""
    return sorted({*values[::stride], values[-1]})


def measure_cell(
    width: int,
    batch_size: int,
    candidates: Pair,
    deadline: float,
    watch: Watch,
) -> Cell | None:
    """REPEATS readings of both candidates, alternately; None if time runs out first."""
    steps = [training_step(width, batch_size, candidate) for candidate in candidates]
    counts = [1, 1]
    seconds: list[list[float]] = [[], []]
    for repeat in range(REPEATS + 1):
        for index, candidate in enumerate(candidates):
            watch.check()
            if time.perf_counter() > deadline:
                return None
            with devices.cpu_threads(candidate.threads):
                device = devices.resolve_timed(candidate.device)
                # A warm-up comes first: the first step with a new thread count is slow.
                (reading,) = timing.measure(
                    many(steps[index], counts[index]), device, repeats=1, warmup=1
                )
            if repeat == 0:
                counts[index] = max(1, round(READING_SECONDS / reading))
            else:
                seconds[index].append(reading / counts[index])
    return Cell(width, batch_size, tuple(seconds[0]), tuple(seconds[1]))


def many(step: Step, count: int) -> Step:
    def work() -> None:
        for _ in range(count):
            step()

    return work


def training_step(width: int, batch_size: int, candidate: Candidate) -> Step:
    """A training step of a 784-width-10 MLP, with the data on the device."""
    device = devices.resolve_timed(candidate.device)
    model = nn.Sequential(
        nn.Linear(INPUTS, width), nn.ReLU(), nn.Linear(width, CLASSES)
    ).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()
    inputs = torch.rand(batch_size, INPUTS, device=device)
    targets = torch.randint(CLASSES, (batch_size,), device=device)

    def step() -> None:
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()

    return step
