"""How long jobs take here, by the like ones that this server has seen.

Like a job is one that calls the same function with the same arguments. Of a training
configuration that counts which decides how long an epoch takes; the epochs are the
amount, and up to twice as many or as few are still like it, in proportion. Where
nothing like a job was ever done there is no estimate.
"""

import hashlib
import heapq
import time
from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import replace
from statistics import median
from typing import Any

from core.config import TRAIN_SAMPLES, RunConfig
from core.jobs.job import Job, Work

NEWEST = 20  # of a kind, whose median is taken
KINDS = 500  # that are remembered; the one that was not done for longest goes
LIKE = 2.0  # how many times as much, or as little, is still like it

# What a run is taken for where it has to be taken for something, see `weight`.
SAMPLES_PER_SECOND = 10_000  # between the ANN and the CNN on two cores


def work(address: str, arguments: tuple[Any, ...]) -> Work:
    """What a call of the function at `address` has to do."""
    text = repr((address, *map(_decisive, arguments)))
    kind = hashlib.sha256(text.encode()).hexdigest()
    config = next(iter(arguments), None)
    if not isinstance(config, RunConfig):
        return Work(kind)
    samples = config.epochs * TRAIN_SAMPLES[config.task]
    return Work(kind, config.epochs, samples / SAMPLES_PER_SECOND)


def _decisive(argument: Any) -> Any:
    """What of an argument decides how long the work takes."""
    if isinstance(argument, RunConfig):
        same: dict[str, Any] = {"learning_rate": 1.0, "weight_decay": 0.0}
        return replace(argument, epochs=1, seed=0, schedule="constant", **same)
    return len(argument) if isinstance(argument, bytes) else argument


class Estimates:
    """Whoever uses it sees to it that only one thread does."""

    def __init__(self) -> None:
        # Of each kind: amount, seconds, and whether it came to its end.
        self._seen: OrderedDict[str, deque[tuple[float, float, bool]]] = OrderedDict()

    def learn(self, job: Job) -> None:
        """Know from now on how long a job took that has ended."""
        if job.seconds is None:
            return
        seen = self._seen.setdefault(job.work.kind, deque(maxlen=NEWEST))
        seen.append((job.work.amount, job.seconds, job.status == "finished"))
        self._seen.move_to_end(job.work.kind)
        if len(self._seen) > KINDS:
            self._seen.popitem(last=False)

    def seconds(self, job: Job) -> float | None:
        """Of the whole job: the median of like ones; None where there are none."""
        amount = job.work.amount
        found = [
            seconds * amount / done
            for done, seconds, finished in self._seen.get(job.work.kind, ())
            if finished and amount / LIKE <= done <= amount * LIKE
        ]
        return median(found) if found else None

    def weight(self, job: Job) -> float:
        """Seconds that the job is taken for where there has to be some figure.

        Its estimate; else by what more or less of the same, or a part of it, took; else
        a guess by its size. It decides what is let in, and nobody is told.
        """
        known = self.seconds(job)
        if known is not None:
            return known
        seen = self._seen.get(job.work.kind, ())
        rates = [seconds / done for done, seconds, _ in seen]
        return job.work.amount * median(rates) if rates else job.work.assumed

    def until_turn(self, taken: Iterable[Job], before: Iterable[Job]) -> float | None:
        """Seconds until the turn of a job: the jobs at workers, and those before it.

        None where one of them is like nothing that was done here, or takes longer than
        that did.
        """
        left = []  # of the work that each worker has
        for job in taken:
            whole = self.seconds(job)
            since = time.time() - job.started if job.started else 0.0
            if whole is None or since > whole:
                return None
            left.append(whole - since)
        heapq.heapify(left)
        for job in before:
            seconds = self.seconds(job)
            if seconds is None or not left:
                return None
            heapq.heapreplace(left, left[0] + seconds)
        return left[0] if left else None
