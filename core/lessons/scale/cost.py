"""Time a training step on one rank and on several, with and without communication.

A way is a number of ranks with their CPU threads. All ranks are started once, and the
ways take turns, so that other load on the machine slows all ways equally.
"""

import time
from contextlib import nullcontext
from itertools import repeat
from random import Random
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from core import devices, loops, models
from core.data import datasets
from core.lessons.scale import ranks
from core.lessons.scale.data_parallel import LEARNING_RATE, SEED
from core.lessons.scale.scale_result import SIZES, Cost, Repeat, Step
from core.measure.environment import now
from core.watch import UNWATCHED, Watch

REPEATS, WARMUP = 9, 1
REPEAT_SECONDS = 0.1  # about the time of a repeat's steps on one rank
MOST_STEPS = 50  # the limit for one repeat


class Way:
    """One way to run a step: `size` ranks, each of which takes a share of one batch."""

    def __init__(
        self, size: int, threads: int, model_name: str, batch: datasets.Split
    ) -> None:
        """Every rank has to call this, since torch's new_group needs all ranks."""
        self.size, self.threads, self.device = size, threads, ranks.device()
        self.group: Any = dist.new_group(list(range(size)))
        self.joins = dist.get_rank() < size
        if not self.joins:
            return
        torch.manual_seed(SEED)
        self.model: Any = models.build(model_name).to(self.device)
        if size > 1:
            self.model = DistributedDataParallel(self.model, process_group=self.group)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), LEARNING_RATE)
        share = len(batch) // size
        mine = slice(share * dist.get_rank(), share * (dist.get_rank() + 1))
        self.batch = (
            batch.images[mine].to(self.device),
            batch.labels[mine].to(self.device),
        )

    def seconds(self, steps: int, silent: bool = False) -> float:
        """Mean seconds of a step on this rank.

        If `silent`, the ranks don't exchange gradients.
        """
        exchange = self.model.no_sync() if silent else nullcontext()
        dist.barrier(self.group)
        with devices.cpu_threads(self.threads), exchange:
            devices.synchronize(self.device)
            began = time.perf_counter()
            for _ in loops.train_epoch(
                self.model,
                repeat(self.batch, steps),
                nn.CrossEntropyLoss(),
                self.optimizer,
                self.device,
            ):
                pass
            devices.synchronize(self.device)
            return (time.perf_counter() - began) / steps


def take_turns(
    task: str,
    model_name: str,
    batch_size: int,
    setups: list[tuple[int, int]],
    repeats: int,
    watch: Watch = UNWATCHED,
) -> list[list[float]]:
    """Run on each rank: time the ways in turn; return this rank's step times.

    The result has one list of seconds for a setup of one rank, and two for a
    setup of several ranks: with and without the exchange of gradients. A list
    has a value per repeat, or is empty if this rank takes no part.
    """
    batch = datasets.load(task).train.first(batch_size)
    ways = [Way(*setup, model_name, batch) for setup in setups]
    steps = _steps_of_a_repeat(ways[0])
    turns = [
        (way, silent)
        for way in ways
        for silent in ((False, True) if way.size > 1 else (False,))
    ]
    readings: list[list[float]] = [[] for _ in turns]
    for number in range(WARMUP + repeats):
        # Threads that are still busy with one way slow down the next. So each
        # repeat has a new order, which is the same on all ranks.
        for place in Random(number).sample(range(len(turns)), len(turns)):
            way, silent = turns[place]
            dist.barrier()  # wait until no rank is busy with the previous way
            if way.joins:
                seconds = way.seconds(steps, silent)
                if number >= WARMUP:
                    readings[place].append(seconds)
        if dist.get_rank() == 0:
            watch.report(Repeat(number + 1, WARMUP + repeats))
    return readings


def setups_for(cores: int) -> list[tuple[int, int]]:
    """The setups to compare: (number of ranks, CPU threads per rank).

    With several GPUs, there is at most one rank per GPU. On the CPU, one rank with all
    cores is compared with several ranks that share the cores.
    """
    gpus = torch.cuda.device_count()
    if gpus > 1:
        return [(size, 1) for size in SIZES if size <= gpus]
    alone = [(1, 1), (1, cores)] if cores > 1 else [(1, 1)]
    return alone + [(size, 1) for size in SIZES if size > 1]


def _steps_of_a_repeat(alone: Way) -> int:
    """How many steps one rank makes in REPEAT_SECONDS: the same number on all ranks."""
    steps = torch.zeros(1, dtype=torch.int64, device=alone.device)
    if alone.joins:
        alone.seconds(2)
        steps += min(MOST_STEPS, max(2, round(REPEAT_SECONDS / alone.seconds(3))))
    dist.broadcast(steps, src=0)
    return int(steps.item())


def measure(
    task: str,
    model_name: str,
    batch_size: int,
    watch: Watch = UNWATCHED,
    repeats: int = REPEATS,
) -> Cost:
    """Time steps of one batch on one rank and on several; reports each Repeat."""
    cores = devices.usable_cores()
    setups = setups_for(cores)
    count = max(size for size, _ in setups)
    backend = ranks.backend_for(count)
    address = "core.lessons.scale.cost:take_turns"
    arguments = (task, model_name, batch_size, setups, repeats)
    by_rank = ranks.run(
        address,
        count,
        *arguments,
        backend=backend,
        watch=watch,
        reports=Repeat,
    )
    # A step takes as long as its slowest rank.
    seconds = (
        tuple(map(max, zip(*filter(None, readings), strict=True)))
        for readings in zip(*by_rank, strict=True)
    )
    steps = tuple(
        Step(size, threads, next(seconds), next(seconds) if size > 1 else ())
        for size, threads in setups
    )
    return Cost(model_name, batch_size, steps, cores, *ranks.means(backend), now())
