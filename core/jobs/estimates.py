"""How long jobs will probably take, from similar jobs, and how that is said."""

import hashlib
import heapq
import math
import time
from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import median
from typing import Any, NamedTuple

from core.config import TRAIN_SAMPLES, RunConfig
from core.jobs.job import Job, Work

UNITS = ((3600, "an hour", "hours"), (60, "a minute", "minutes"))
NEWEST = 5  # an estimate is the median of at most so many jobs of a kind
KINDS = 500  # kinds of jobs to remember; the kind seen least recently is dropped
RECENT_SECONDS = 900.0  # jobs that ended longer ago say nothing of how busy it is now
SIMILAR = 2.0  # the amounts of work of similar jobs differ by at most this factor
# The guess for a run if no similar run has ended yet. It is between the speeds of the
# ANN and the CNN on two cores.
SAMPLES_PER_SECOND = 10_000


class Ended(NamedTuple):
    """A job that has ended: how much work it was, and how long it took."""

    amount: float
    seconds: float
    finished: bool
    when: float  # of time.monotonic()
    is_run: bool
    is_apps: bool  # it ran while nobody else did


def spoken(seconds: float) -> str:
    for unit, singular, plural in UNITS:
        if seconds == unit:
            return singular
        if seconds >= 2 * unit:
            return f"{seconds / unit:,.0f} {plural}"
    return f"{seconds:.0f} seconds" if seconds >= 10 else f"{seconds:.2g} seconds"


def longer(seconds: float, most: float) -> str:
    """How long a job takes that takes longer than `most` seconds, in words."""
    about, limit = spoken(seconds), spoken(most)
    return f"about {about}" if about != limit else f"a little more than {limit}"


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


def _is_run(job: Job) -> bool:
    return isinstance(next(iter(job.arguments), None), RunConfig)


def _of_people(jobs: list[Ended]) -> list[Ended]:
    return [one for one in jobs if not one.is_apps] or jobs


def _varied(jobs: Sequence[Ended]) -> float:
    rates = [one.seconds / one.amount for one in jobs if one.finished] or [1.0]
    return max(rates) / min(rates)


class Estimates:
    """How long jobs take, from similar jobs of this server; not thread-safe."""

    def __init__(self, longest: float = math.inf) -> None:
        """No job takes longer than `longest` seconds, whatever its clock says."""
        self._longest = longest
        # The newest jobs of each kind, and of each address, whatever their arguments
        self._jobs: OrderedDict[str, deque[Ended]] = OrderedDict()
        self._calls: dict[str, deque[Ended]] = {}

    def learn(self, job: Job, ago: float = 0.0) -> None:
        """Take in how long a job took that ended so many seconds ago."""
        if job.seconds is None:
            return
        seconds = min(job.seconds, self._longest)
        finished = job.status == "finished"
        ended = Ended(
            job.work.amount,
            seconds,
            finished,
            time.monotonic() - ago,
            _is_run(job),
            is_apps=not job.owner,
        )
        self._calls.setdefault(job.address, deque(maxlen=NEWEST)).append(ended)
        self._jobs.setdefault(job.work.kind, deque(maxlen=NEWEST)).append(ended)
        self._jobs.move_to_end(job.work.kind)
        if len(self._jobs) > KINDS:
            self._jobs.popitem(last=False)

    def seconds(self, job: Job) -> float | None:
        """The estimated seconds, from similar jobs; None if there were none.

        Those that ended long before the newest one don't count.
        """
        recent = self._newest(job)
        own = job.work.amount
        return median(o.seconds * own / o.amount for o in recent) if recent else None

    def _recent_calls(self, job: Job) -> float | None:
        """What recent calls took, whatever their arguments; None for training runs.

        It tells roughly how long somebody waits for other people's code or labs. A
        training run may take a thousand times as long as another.
        """
        since = time.monotonic() - RECENT_SECONDS
        recent = [
            one.seconds
            for one in self._calls.get(job.address, ())
            if one.finished and one.when >= since
        ]
        return median(recent) if recent and not _is_run(job) else None

    def _newest(self, job: Job) -> list[Ended]:
        """Those like it, without those that ended long before the newest one."""
        similar = self._similar(job)
        since = similar[-1].when - RECENT_SECONDS if similar else 0.0
        return [one for one in similar if one.when >= since]

    def _recent(self, job: Job) -> list[Ended]:
        since = time.monotonic() - RECENT_SECONDS
        return [one for one in self._similar(job) if one.when >= since]

    def _similar(self, job: Job) -> list[Ended]:
        own, jobs = job.work.amount, self._jobs.get(job.work.kind, ())
        return [
            one
            for one in jobs
            if one.finished and own / SIMILAR <= one.amount <= own * SIMILAR
        ]

    def spread(self, job: Job) -> float:
        """How many times as long as the fastest the slowest of the newest like it took.

        If the same work of another kind varied more in that time, that counts: it is
        the machine that varies. It stays the same until jobs like it end, so that a
        page says the same an hour later. The app's own jobs, which run while nobody
        else does, only count where there are no others.
        """
        newest = _of_people(self._newest(job))
        most = _varied(newest)
        if not newest:
            return most
        since, until = newest[-1].when - RECENT_SECONDS, newest[-1].when
        for ended in self._jobs.values():
            runs = _of_people(
                [one for one in ended if one.is_run and since <= one.when <= until]
            )
            most = max(most, _varied([r for r in runs if r.amount == runs[-1].amount]))
        return most

    def weight(self, job: Job) -> float:
        """The estimate in seconds, or else a guess, which is too rough to be shown."""
        expected = self.seconds(job)
        if expected is not None:
            return expected
        jobs = self._jobs.get(job.work.kind, ())
        rates = [one.seconds / one.amount for one in jobs]
        return job.work.amount * median(rates) if rates else job.work.assumed

    def until_turn(self, at_work: Iterable[Job], before: Iterable[Job]) -> float | None:
        """Seconds until a worker is free for the job that comes after those `before`.

        `at_work` are the jobs that workers have now. A run's steps so far tell when the
        run will end, and how long waiting runs of its kind will take. Earlier runs tell
        less: the machine may be busier now. So until a run has made its first steps,
        only recent ones count. None if another job can't be estimated at all.
        """
        backlogs: list[float] = []  # seconds until each worker is free
        paces: dict[str, float] = {}  # seconds for each unit of a kind's amount
        for job in at_work:
            is_known = bool(self._recent(job))
            whole = self.seconds(job) if is_known else self._recent_calls(job)
            rest = job.progress.seconds_left
            # A worker that still loads torch, after a restart, has not begun the run.
            is_at_work = job.progress.started or not _is_run(job)
            since = time.monotonic() - job.began if job.began and is_at_work else 0.0
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
            if seconds is None:
                seconds = self._recent_calls(job)
            if seconds is None or not backlogs:
                return None
            heapq.heapreplace(backlogs, backlogs[0] + seconds)
        return backlogs[0] if backlogs else None
