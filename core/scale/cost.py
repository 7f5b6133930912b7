"""What a step costs on one rank and on several, and how much of it is communication.

All ranks are started once. In turn, some of them compute a step together while the
others wait, so that whatever disturbs the machine disturbs all of them alike.
"""

import time
from contextlib import AbstractContextManager, nullcontext
from itertools import repeat
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from core import devices, loops, models
from core.data import datasets
from core.measure.environment import now
from core.scale import ranks
from core.scale.data_parallel import LEARNING_RATE, SEED
from core.scale.results import Cost, Repeat, Step
from core.watch import UNWATCHED, Watch

SIZES = (1, 2, 4)
REPEATS, WARMUP = 9, 1
BLOCK_SECONDS = 0.06  # that the steps of a repeat take on one rank, about
MOST_STEPS = 30


class Way:
    """Steps of some ranks, on their shares of one batch."""

    def __init__(
        self, size: int, threads: int, model_name: str, batch: datasets.Split
    ) -> None:
        """All ranks make it, also those that have no part in it."""
        self.size, self.threads, self.device = size, threads, ranks.device()
        self.group: Any = dist.new_group(list(range(size)))
        self.joins = dist.get_rank() < size
        if not self.joins:
            return
        torch.manual_seed(SEED)
        model = models.build(model_name).to(self.device)
        self.model: Any = model
        if size > 1:
            self.model = DistributedDataParallel(model, process_group=self.group)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), LEARNING_RATE)
        share = len(batch) // size
        mine = slice(share * dist.get_rank(), share * (dist.get_rank() + 1))
        self.batch = (
            batch.images[mine].to(self.device),
            batch.labels[mine].to(self.device),
        )

    def seconds(self, steps: int, silent: bool = False) -> float:
        """Of one step, on this rank; `silent`: without exchanging gradients."""
        exchange: AbstractContextManager = nullcontext()
        if silent:
            exchange = self.model.no_sync()
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
    cores: int,
    repeats: int,
    watch: Watch = UNWATCHED,
) -> list[list[float]]:
    """On each rank: the seconds of a step for each of `blocks`, by repeat.

    Empty where it has no part.
    """
    batch = datasets.load(task).train.first(batch_size)
    ways = [Way(*each, model_name, batch) for each in sizes(cores)]
    steps = _steps_of_a_repeat(ways[0])
    in_turn = blocks(ways)
    taken: list[list[float]] = [[] for _ in in_turn]
    for number in range(WARMUP + repeats):
        for (way, silent), seconds in zip(in_turn, taken, strict=True):
            dist.barrier()  # nobody computes while others do
            if way.joins:
                one = way.seconds(steps, silent)
                if number >= WARMUP:
                    seconds.append(one)
        if dist.get_rank() == 0:
            watch.report(Repeat(number + 1, WARMUP + repeats))
    return taken


def sizes(cores: int) -> list[tuple[int, int]]:
    """Ranks, and CPU threads of each: one with all cores stands beside the others."""
    alone = [(1, 1), (1, cores)] if cores > 1 else [(1, 1)]
    return alone + [(size, 1) for size in SIZES if size > 1]


def blocks(ways: list[Way]) -> list[tuple[Way, bool]]:
    """What is timed in turn: each way, those of several ranks silent as well."""
    return [
        (way, silent)
        for way in ways
        for silent in ((False, True) if way.size > 1 else (False,))
    ]


def _steps_of_a_repeat(alone: Way) -> int:
    """As many as one rank takes BLOCK_SECONDS for; all ranks agree on the number."""
    steps = torch.zeros(1, dtype=torch.int64, device=alone.device)
    if alone.joins:
        alone.seconds(2)
        steps += min(MOST_STEPS, max(2, round(BLOCK_SECONDS / alone.seconds(3))))
    dist.broadcast(steps, src=0)
    return int(steps.item())


def measure(
    task: str,
    model_name: str,
    batch_size: int,
    watch: Watch = UNWATCHED,
    repeats: int = REPEATS,
) -> Cost:
    """The same batch of the training images on 1, 2 and 4 ranks; reports Repeat."""
    count, cores = max(SIZES), devices.usable_cores()
    what = (task, model_name, batch_size, cores, repeats)
    found = ranks.run("core.scale.cost:take_turns", count, *what, watch=watch)
    steps: list[Step] = []
    by_block = iter(zip(*found, strict=True))
    for size, threads in sizes(cores):
        seconds = _slowest(next(by_block))
        silent = _slowest(next(by_block)) if size > 1 else ()
        steps.append(Step(size, threads, seconds, silent))
    gradients = 4 * models.count_parameters(models.build(model_name))
    return Cost(
        model_name,
        batch_size,
        tuple(steps),
        gradients,
        cores,
        *ranks.means(count),
        now(),
    )


def _slowest(taken: tuple[list[float], ...]) -> tuple[float, ...]:
    """A step has ended when its last rank is done."""
    return tuple(map(max, zip(*filter(None, taken), strict=True)))
