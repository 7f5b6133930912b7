"""Which jobs may wait, and how long they may run.

The limits leave room for a class of a hundred people with a run of up to a minute each,
and for hundreds whose runs take seconds. But a program that poses as many visitors must
not be able to queue a day of work.
A lane is a queue with workers of its own: "train" or "lab".
"""

import os
import time
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from threading import Event, Lock
from typing import Self

from core.jobs.estimates import Estimates, longer, spoken
from core.jobs.job import Job
from core.jobs.queue import Queue
from core.watch import Control
from to_device.errors import ExplainedError
from to_device.words import Words

SHORT_SECONDS = 60.0  # shorter jobs are accepted even when the queue is long
SHORT_SHARE = 3.0  # of max_waiting_seconds: with short jobs, the queue may hold as much
# Calls of Engine.ask that wait or are being answered, each of which takes a thread: of
# a person, and of a network address, since a program has any number of cookies. A
# hundred people may share an address.
OPEN_QUESTIONS, OPEN_OF_ADDRESS = 8, 300
NEW_SECONDS = 60.0  # a cookie is new for this time
MOST_ADDRESSES = 10_000  # whose turns are remembered
words = Words(__file__)


@dataclass(frozen=True)
class Limits:
    """The server's limits.

    Environment variables set them: MAX_WAITING_JOBS sets max_waiting_jobs.
    """

    max_jobs_per_person: int = 4  # waiting or running
    max_waiting_jobs: int = 1000  # in each lane; each takes some memory
    max_waiting_seconds: int = 3600  # work in each lane; thrice with short jobs
    max_job_seconds: int = 1200  # counted from when a worker begins the job
    max_database_mb: int = 10_000  # then the oldest rows go, see core.store.space

    @classmethod
    def from_environment(cls) -> Self:
        """The limits that the environment sets, and defaults for the others.

        Raises ExplainedError if a variable isn't a whole number above 0.
        """
        limits = {}
        for limit in fields(cls):
            variable = limit.name.upper()
            if text := os.environ.get(variable):
                if not (text.isascii() and text.isdigit() and int(text)):
                    message = (
                        f"{variable} must be a whole number above 0, not {text!r}."
                    )
                    raise ExplainedError(message)
                limits[limit.name] = int(text)
        return cls(**limits)


class Gate:
    """Rules that a teacher's class adds to the server's limits; here, none.

    The engine holds its lock while it calls a gate, so a gate must not wait.
    """

    @property
    def paused(self) -> bool:
        """While this is true, the lane "train" starts no jobs; running jobs go on."""
        return False

    def person(self, owner: str) -> str:
        """The person that an owner (a visitor) counts as; several may count as one."""
        return owner

    def seconds(self, owner: str) -> float | None:  # noqa: ARG002
        """The most seconds for a job of this owner; None for the server's limit."""
        return None

    def steer(self, owner: str, control: Control) -> None:
        """Raise ExplainedError if the owner may not steer a running job like this."""

    def admit(self, job: Job, expected: float | None) -> None:
        """Refuse a job with ExplainedError, or else count it if it is a run.

        `expected` is the estimate in seconds, or None without an estimate.
        """


class Admission:
    def __init__(self, gate: Gate | None = None, limits: Limits | None = None) -> None:
        self.gate = gate or Gate()
        self.limits = limits or Limits.from_environment()
        self.estimates = Estimates(self.limits.max_job_seconds)

    def seconds(self, owner: str) -> float:
        most = self.limits.max_job_seconds
        return min(most, self.gate.seconds(owner) or most)

    def check(self, job: Job, queue: Queue) -> None:
        """Raise ExplainedError if the job may not wait; a refused job changes nothing.

        The server's own jobs, which have no owner, may always wait.
        """
        if not job.owner:
            return
        limits, waiting = self.limits, queue.waiting(job.lane)
        count = limits.max_jobs_per_person
        if queue.count_of(job.turn_of) >= count:
            jobs = f"{count} {'job' if count == 1 else 'jobs'}"
            raise ExplainedError(words("refused.many", jobs=jobs))
        expected, longest = self.estimates.seconds(job), limits.max_job_seconds
        if expected is not None and expected > longest:
            texts = {"expected": longer(expected, longest), "most": spoken(longest)}
            raise ExplainedError(words("refused.long", **texts))
        if self._is_full(job, waiting) and self.gives_way(job, queue) is None:
            raise ExplainedError(words("refused.full", count=len(waiting)))
        is_long = self.estimates.weight(job) > SHORT_SECONDS
        if is_long and self._seconds_with(job, waiting) > limits.max_waiting_seconds:
            most, short = spoken(limits.max_waiting_seconds), spoken(SHORT_SECONDS)
            raise ExplainedError(words("refused.work", most=most, short=short))
        self.gate.admit(job, expected)

    def _is_full(self, job: Job, waiting: Collection[Job]) -> bool:
        most = SHORT_SHARE * self.limits.max_waiting_seconds
        return (
            len(waiting) >= self.limits.max_waiting_jobs
            or self._seconds_with(job, waiting) > most
        )

    def _seconds_with(self, job: Job, waiting: Collection[Job]) -> float:
        """The work of the queue with this job in it."""
        return sum(map(self.estimates.weight, [job, *waiting]))

    def gives_way(self, job: Job, queue: Queue) -> Job | None:
        """The waiting job that leaves a full queue for this one; None if none has to.

        It is the newest of the network that has the most jobs waiting, if these are at
        least two more than those of the job's own network. A program can pose as many
        visitors, but it has few networks.
        """
        waiting = queue.waiting(job.lane)
        counts = Counter(other.network for other in waiting if other.network)
        if not job.owner or not counts or not self._is_full(job, waiting):
            return None
        fullest, most = counts.most_common(1)[0]
        if most < counts[job.network] + 2:
            return None
        theirs = (other for other in waiting if other.network == fullest)
        return max(theirs, key=lambda other: other.arrived)


def overdue(seconds: float) -> str:
    """The message of a job that ran for too long."""
    return (
        f"The job was stopped after {spoken(seconds)}, the longest "
        "that a job may take here. The machine may be busy: try "
        "again later, or with fewer epochs."
    )


def gave_way() -> str:
    """The message of a job that has left a full queue for another network's."""
    return (
        "The queue was full, and most of its jobs came from your network. So this one "
        "made room for somebody else's. Start it again in a few minutes."
    )


@dataclass(eq=False)
class Asker:
    """Who asks a question; the defaults are for one of whom nothing else is known."""

    owner: str
    person: str = ""  # several owners may count as one person; "": the owner is one
    address: str = ""  # on the network; those who share a turn take it one by one
    since: float = 0.0  # when the owner's cookie was given, by time.monotonic
    # Set once it is the asker's turn, or has lost its place to another of the address
    begun: Event = field(default_factory=Event)
    is_refused: bool = False

    def rank(self) -> int:
        """0, 1 or 2: those with a lower rank come first.

        They are members of an open class (or all, without a class), people outside the
        class, and people with a new cookie, whom a program can make by the hundred.
        """
        if time.monotonic() - self.since < NEW_SECONDS:
            return 2
        return 0 if self.person in ("", self.owner) else 1


class Questions:
    """Limits how many Engine.ask calls run at once, in all and per person.

    When one ends, the next is by rank. Of the same rank, addresses take turns, so that
    no program holds all places with many cookies.
    """

    def __init__(self, in_all: int, per_person: int) -> None:
        self._in_all, self._per_person = in_all, per_person
        self._lock = Lock()  # guards the fields below
        self._open: Counter[str] = Counter()  # how many questions each owner has open
        self._of_address: Counter[str] = Counter()  # and each address
        self._running: Counter[str] = Counter()  # how many of each person's run
        self._waiting: list[Asker] = []  # in the order in which they came
        self._turns: dict[str, int] = {}  # by address: number of its newest turn
        self._number = 0  # of the newest turn

    def ahead(self, owner: str, person: str = "") -> int:
        """How many questions have to be answered before this owner's next one."""
        with self._lock:
            in_all = self._running.total() + len(self._waiting)
            own = self._running[person or owner]
            own += sum(
                (a.person or a.owner) == (person or owner) for a in self._waiting
            )
        return max(in_all - self._in_all + 1, own - self._per_person + 1, 0)

    @contextmanager
    def turn(self, asker: Asker | str, seconds: float) -> Iterator[None]:
        """Wait for the asker's turn, at most `seconds`; the turn lasts for the block.

        The server's own questions, with the owner "", don't wait. Raises ExplainedError
        if no turn comes in time, or if the owner or the address has too many questions
        open: see `_refuse_one_of`.
        """
        asker = Asker(asker) if isinstance(asker, str) else asker
        if not asker.owner:
            yield
            return
        with self._lock:
            if self._open[asker.owner] >= OPEN_QUESTIONS:
                raise ExplainedError(words("questions.too_many"))
            if self._of_address[asker.address] >= OPEN_OF_ADDRESS:
                self._refuse_one_of(asker)
            self._open[asker.owner] += 1
            self._of_address[asker.address] += 1
            self._waiting.append(asker)
            self._begin()
        has_turn = asker.begun.wait(seconds)
        with self._lock:
            if not has_turn and not asker.begun.is_set():
                self._waiting.remove(asker)
                self._close(asker)
                raise ExplainedError(words("questions.no_turn"))
        if asker.is_refused:
            raise ExplainedError(words("questions.too_many_here"))
        try:
            yield
        finally:
            with self._lock:
                self._running[asker.person or asker.owner] -= 1
                self._running += Counter()  # drops people at 0
                self._close(asker)
                self._begin()

    def _refuse_one_of(self, asker: Asker) -> None:
        """Refuse one of those who wait at an asker's address.

        It's one of the owner with the most questions open, or else with the newest
        cookie. Raises ExplainedError if that is the asker.
        """
        others = (a for a in self._waiting if a.address == asker.address)
        opened = self._open + Counter([asker.owner])
        last = max([asker, *others], key=lambda a: (a.rank(), opened[a.owner], a.since))
        if last is asker:
            raise ExplainedError(words("questions.too_many_here"))
        self._waiting.remove(last)
        self._close(last)
        last.is_refused = True
        last.begun.set()

    def _close(self, asker: Asker) -> None:
        self._open[asker.owner] -= 1
        self._of_address[asker.address] -= 1
        self._open += Counter()
        self._of_address += Counter()

    def _begin(self) -> None:
        """Give the free places to those whose turn it is.

        Only they wake: if all who wait looked whose turn it is, whenever somebody's has
        ended, some hundred would keep the server busy.
        """
        while (asker := self._next()) is not None:
            self._waiting.remove(asker)
            self._number += 1
            self._turns.pop(asker.address, None)
            self._turns[asker.address] = self._number
            if len(self._turns) > MOST_ADDRESSES:
                del self._turns[next(iter(self._turns))]
            self._running[asker.person or asker.owner] += 1
            asker.begun.set()

    def _next(self) -> Asker | None:
        """Whose turn it is now; None if nobody may begin."""
        if self._running.total() >= self._in_all:
            return None
        may = (
            asker
            for asker in self._waiting
            if self._running[asker.person or asker.owner] < self._per_person
        )
        # min takes the first of those that are equal, who came first.
        return min(
            may,
            key=lambda asker: (asker.rank(), self._turns.get(asker.address, 0)),
            default=None,
        )
