"""Time a DataLoader without a model: batch size × workers × pinned memory.

The start of the worker processes is timed separately, since it happens only once.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from itertools import product
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset, RandomSampler

from core import devices
from core.data import datasets
from core.data.feeds import textbook_dataset
from core.lessons.speed.loader_result import (
    TEXTBOOK_BATCH,
    LoaderCell,
    LoaderLab,
    LoaderPlan,
    to_compare,
)
from core.measure.environment import now
from core.watch import UNWATCHED, Watch
from to_device.errors import ExplainedError

READINGS = 3
READINGS_IN_TURN = 5
READING_SAMPLES = 1024  # the fewest samples in a reading
AHEAD = 2  # batches that each worker makes ahead of the loop; DataLoader's own default
ENDLESS = 10**9  # samples in an epoch, more than any measurement takes
HANGS_SECONDS = 60  # how long a batch may take, since new workers first import torch


class TimeOver(Exception):  # noqa: N818  # ends a measurement, and is no error
    """The time budget is spent."""


def measure(
    task: str,
    device_name: str,
    plan: LoaderPlan,
    budget_seconds: float,
    watch: Watch = UNWATCHED,
) -> LoaderLab:
    """Measure the plan's settings until the budget is spent. Report each LoaderCell.

    If the workers of a setting fail, the result's `failures` say why.
    The fastest cells with the textbook's batch size are measured once more, in
    turn, so that they can be compared.
    """
    device = devices.resolve_timed(device_name)
    images = textbook_dataset(datasets.load(task).train)
    deadline = time.perf_counter() + budget_seconds

    def check() -> None:
        watch.check()
        if time.perf_counter() > deadline:
            raise TimeOver

    cells: list[LoaderCell] = []
    failures: list[str] = []
    direct: tuple[LoaderCell, ...] = ()
    with suppress(TimeOver):
        for batch_size in plan.batch_sizes:
            for workers, pinned in product(plan.workers, plan.pinned):
                setting = batch_size, workers, pinned
                try:
                    cells.append(measure_cell(images, *setting, device, check))
                except (RuntimeError, OSError) as error:
                    if workers == 0:
                        raise
                    failures.append(failure(batch_size, workers, error))
                else:
                    watch.report(cells[-1])
            if batch_size == TEXTBOOK_BATCH:
                chosen = to_compare(cells)
                with suppress(RuntimeError, OSError):  # many workers at once may fail
                    direct = in_turn(images, chosen, device, check)
    if failures and not cells:
        raise ExplainedError(failures[0])
    readings = plan, tuple(cells), direct, tuple(failures)
    settings = task, devices.usable_cores(), budget_seconds
    return LoaderLab(*readings, *settings, devices.environment(device), now())


def failure(batch_size: int, workers: int, error: Exception) -> str:
    """Why loading failed, and that a container may have too little shared memory."""
    return (
        "Loading with {workers} at batch size {batch_size:,} failed: "
        "{reason}. If the app runs in a container, give it more "
        "shared memory (docker run --shm-size=2g)."
    ).format(
        workers="1 worker" if workers == 1 else f"{workers} workers",
        batch_size=batch_size,
        reason=str(error).partition("\n")[0].rstrip("."),
    )


def make_loader(
    images: Any, batch_size: int, num_workers: int, pin_memory: bool
) -> DataLoader:
    """A loader that draws images at random; its epoch outlasts any reading."""
    sampler = RandomSampler(images, replacement=True, num_samples=ENDLESS)
    return DataLoader(
        images,
        batch_size,
        sampler=sampler,
        num_workers=num_workers,
        pin_memory=pin_memory,
        timeout=HANGS_SECONDS if num_workers else 0,
    )


def measure_cell(
    images: Dataset,
    batch_size: int,
    workers: int,
    pinned: bool,
    device: torch.device,
    check: Callable[[], None],
) -> LoaderCell:
    """Time one setting once its workers run. `check` may raise, to stop it."""
    loader = make_loader(images, batch_size, workers, pinned)
    count = max(-(-READING_SAMPLES // batch_size), AHEAD * workers, 2)
    seconds = []
    start = time.perf_counter()
    with batches_of(loader) as feed:  # this starts the workers
        take(feed, 1, device, pinned, check)
        start_seconds = time.perf_counter() - start
        # Skip the batches made ahead, which arrive sooner than later batches.
        take(feed, AHEAD * workers, device, pinned, check)
        for _ in range(READINGS):
            start = time.perf_counter()
            take(feed, count, device, pinned, check)
            seconds.append(time.perf_counter() - start)
    return LoaderCell(
        batch_size,
        workers,
        pinned,
        start_seconds,
        count * batch_size,
        tuple(seconds),
    )


def in_turn(
    images: Dataset,
    cells: Sequence[LoaderCell],
    device: torch.device,
    check: Callable[[], None],
) -> tuple[LoaderCell, ...]:
    """Measure the cells again, in turn (A B A B), with all their workers running."""
    seconds: list[list[float]] = [[] for _ in cells]
    # Before a reading, skip the batches that were made ahead. Meanwhile, the previous
    # cell's workers finish their own batches ahead and pause.
    ahead = AHEAD * max((cell.workers for cell in cells), default=0) + 1
    with ExitStack() as stack:
        feeds = []
        for cell in cells:
            loader = make_loader(images, cell.batch_size, cell.workers, cell.pinned)
            feeds.append(stack.enter_context(batches_of(loader)))
        for _ in range(READINGS_IN_TURN):
            for cell, feed, readings in zip(cells, feeds, seconds, strict=True):
                take(feed, ahead, device, cell.pinned, check)
                start = time.perf_counter()
                count = cell.samples // cell.batch_size
                take(feed, count, device, cell.pinned, check)
                readings.append(time.perf_counter() - start)
    pairs = zip(cells, map(tuple, seconds), strict=True)
    return tuple(replace(cell, seconds=readings) for cell, readings in pairs)


@contextmanager
def batches_of(loader: DataLoader) -> Iterator[Iterator[Any]]:
    """Iterate over a loader's batches; its workers end with the `with` block."""
    feed = iter(loader)
    try:
        yield feed
    finally:
        # End the workers here, and don't leave this to garbage collection: an error's
        # traceback would keep the iterator, and so the workers, alive.
        if loader.num_workers:
            feed._shutdown_workers()  # type: ignore[attr-defined]


def take(
    feed: Iterator[Any],
    count: int,
    device: torch.device,
    pinned: bool,
    check: Callable[[], None],
) -> None:
    """Move the next `count` batches to the device, as a training loop does."""
    for _ in range(count):
        check()
        inputs, targets = next(feed)
        inputs.to(device, non_blocking=pinned)
        targets.to(device, non_blocking=pinned)
    devices.synchronize(device)
