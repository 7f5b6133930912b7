"""How long jobs will probably take, from similar jobs, and how that is said."""

import hashlib
import heapq
import math
import time
from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import replace
from statistics import median
from typing import Any

from core.config import TRAIN_SAMPLES, RunConfig
from core.jobs.job import Job, Work

UNITS = ((3600, "an hour", "hours"), (60, "a minute", "minutes"))
NEWEST = 5  # an estimate is the median of at most so many jobs of a kind
KINDS = 500  # kinds of jobs to remember; the kind seen least recently is dropped
SIMILAR = 2.0  # the amounts of work of similar jobs differ by at most this factor
# The guess for a run if no similar run has ended yet. It is between the speeds of the
# ANN and the CNN on two cores.
SAMPLES_PER_SECOND = 10_000


def spoken(seconds: float) -> str:
    for unit, singular, plural in UNITS:
        if seconds == unit:
            return singular
        if seconds >= 2 * unit:
            return f"{seconds / unit:,.0f} {plural}"
    return f"{seconds:.3g} seconds"


def work(address: str, arguments: tuple[Any, ...]) -> Work:
    """How much work a call is; a training run has its epochs and a guess of its time.

    Calls are of one kind if they differ only in settings that don't affect how long an
    epoch takes, such as the seed.
    """

    def decisive(argument: Any) -> Any:
        if isinstance(argument, RunConfig):
            same: dict[str, Any] = {"learning_rate": 1.0, "weight_decay": 0.0}
            return replace(argument, epochs=1, seed=0, schedule="constant", **same)
        return len(argument) if isinstance(argument, bytes) else argument

    text = repr((address, *map(decisive, arguments)))
    kind = hashlib.sha256(text.encode()).hexdigest()
    config = next(iter(arguments), None)
    if not isinstance(config, RunConfig):
        return Work(kind)
    samples = config.epochs * TRAIN_SAMPLES[config.task]
    return Work(kind, config.epochs, samples / SAMPLES_PER_SECOND)


class Estimates:
    """How long jobs take, from similar jobs of this server; not thread-safe."""

    def __init__(self, longest: float = math.inf) -> None:
        """No job takes longer than `longest` seconds, whatever its clock says."""
        self._longest = longest
        # For each kind, the newest jobs: amount, seconds, and whether the job finished.
        self._jobs: OrderedDict[str, deque[tuple[float, float, bool]]] = OrderedDict()

    def learn(self, job: Job) -> None:
        if job.seconds is None:
            return
        jobs = self._jobs.setdefault(job.work.kind, deque(maxlen=NEWEST))
        seconds = min(job.seconds, self._longest)
        jobs.append((job.work.amount, seconds, job.status == "finished"))
        self._jobs.move_to_end(job.work.kind)
        if len(self._jobs) > KINDS:
            self._jobs.popitem(last=False)

    def seconds(self, job: Job) -> float | None:
        """The estimated seconds, from similar jobs; None if there were none."""
        own = job.work.amount
        similar = [
            seconds * own / amount
            for amount, seconds, finished in self._jobs.get(job.work.kind, ())
            if finished and own / SIMILAR <= amount <= own * SIMILAR
        ]
        return median(similar) if similar else None

    def weight(self, job: Job) -> float:
        """The estimate in seconds, or else a guess, which is too rough to be shown."""
        expected = self.seconds(job)
        if expected is not None:
            return expected
        jobs = self._jobs.get(job.work.kind, ())
        rates = [seconds / amount for amount, seconds, _ in jobs]
        return job.work.amount * median(rates) if rates else job.work.assumed

    def until_turn(self, at_work: Iterable[Job], before: Iterable[Job]) -> float | None:
        """Seconds until a worker is free for the job that comes after those `before`.

        `at_work` are the jobs that workers have now. A run's steps so far tell when the
        run will end, and how long waiting runs of its kind will take. Earlier runs tell
        less: the machine may be busier now. None if another job has no estimate.
        """
        backlogs: list[float] = []  # seconds until each worker is free
        paces: dict[str, float] = {}  # seconds for each unit of a kind's amount
        for job in at_work:
            whole, rest = self.seconds(job), job.progress.seconds_left
            since = time.monotonic() - job.began if job.began else 0.0
            if rest is not None:
                whole = since + rest
                paces[job.work.kind] = whole / job.work.amount
            if whole is None:
                return None
            backlogs.append(max(whole - since, 0.0))
        heapq.heapify(backlogs)
        for job in before:
            pace = paces.get(job.work.kind)
            seconds = pace * job.work.amount if pace else self.seconds(job)
            if seconds is None or not backlogs:
                return None
            heapq.heapreplace(backlogs, backlogs[0] + seconds)
        return backlogs[0] if backlogs else None
