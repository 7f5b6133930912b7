"""A job, and all that a server knows of: plain data, without torch or Dask."""

import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, compress
from typing import Any, NamedTuple

from core.errors import ExplainedError
from core.results import RunResult

logger = logging.getLogger(__name__)

ENDED = ("finished", "failed", "cancelled", "interrupted")


class InMemory(NamedTuple):
    """How many of the ended jobs that call one function stay in memory."""

    each: int  # of one person
    all: int


IN_MEMORY = InMemory(each=10, all=100)  # what is older comes from the database


def on(host: str) -> str:
    """The resource that the training workers of a machine have, beside "train"."""
    return f"on {host}"


@dataclass(frozen=True)
class Stored:
    """What stands for the checkpoint of a run, in the arguments of a job say."""

    name: str  # the id of the run


@dataclass(frozen=True)
class PickedUp:
    """A worker has begun with a job; the first event of every job."""

    worker: str  # its name


@dataclass(frozen=True)
class Outcome:
    """How work ended. An exception is a sentence: to read one might import torch."""

    status: str  # one of ENDED; only a start finds a job interrupted
    value: Any = None  # what the function returned
    message: str = ""  # why it failed
    machine: str = ""  # the identity of the machine that did it, see core.devices

    def get(self) -> Any:
        """The value; ExplainedError if the work failed."""
        if self.status == "failed":
            raise ExplainedError(self.message)
        return self.value


@dataclass(frozen=True)
class Work:
    """What a job has to do, for estimates."""

    kind: str = ""  # jobs of one kind take as long for the same amount
    amount: float = 1.0
    assumed: float = 60.0  # seconds, where nothing of this kind was ever done


@dataclass(frozen=True, eq=False)
class Job:
    """A piece of work as it stood when it was looked at.

    A job that has ended is the same object at every look.
    """

    id: str
    address: str  # of the function
    arguments: tuple[Any, ...]
    lane: str  # "train" or "lab"
    owner: str = ""  # whoever started it, by a name that only they have; "": the server
    status: str = "queued"  # then "starting", "running", and one of ENDED
    place: int = 0  # in the queue, from 1; 0 when it does not wait
    events: tuple[Any, ...] = ()
    value: Any = None  # what the function returned
    message: str = ""  # why it failed
    submitted: float = field(default_factory=time.time)
    tries: int = 0  # how often it was given to a worker
    started: float | None = None  # seconds since 1970, as `submitted`
    stopped: float | None = None  # likewise, when it ended
    work: Work = Work()
    person: str = ""  # as whom the owner takes turns, if not as themselves
    machine: str = ""  # the identity of the machine that did it, once it has ended
    worker: str = ""  # the name of the one that has begun with it

    @property
    def hosts(self) -> list[str]:
        """The machines that it is for; none: it may be done on any.

        It is done on the first of them, which has parts of it done by the others: in
        one order, so that no two jobs have what the other one waits for.
        """
        if self.lane != "train":
            return []
        told = [each if isinstance(each, tuple) else (each,) for each in self.arguments]
        named = {getattr(each, "host", "") for each in chain.from_iterable(told)}
        return sorted(named - {""})

    @property
    def resources(self) -> list[str]:
        """One of each of these it takes of its worker."""
        return [self.lane, *map(on, self.hosts[:1])]

    @property
    def ended(self) -> bool:
        return self.status in ENDED

    @property
    def turn_of(self) -> str:
        """Whose turn it takes: the owner's, or that of several together."""
        return self.person or self.owner

    @property
    def seconds(self) -> float | None:
        """How long its worker had it; None before it has ended, or if none had it."""
        if self.started is None or self.stopped is None:
            return None
        return self.stopped - self.started


class Jobs:
    """The jobs of a server, with the events of those that go on.

    Whoever uses it sees to it that only one thread does; `receive` is for any thread.
    """

    def __init__(self, on_event: Callable[[str, Any], None]) -> None:
        """`on_event` gets the id of a job and each event of it that is filed."""
        self._on_event = on_event
        self._jobs: dict[str, Job] = {}
        self._events: dict[str, list[Any]] = {}  # of jobs that have not ended
        self._inbox: deque[tuple[str, Any, float]] = deque()  # events not yet filed

    def add(self, job: Job) -> None:
        """Know this job from now on."""
        self._jobs[job.id] = job
        self._events[job.id] = []
        _log(job)

    def receive(self, job_id: str, event: Any) -> None:
        """Take an event in, without waiting; it is filed at the next look."""
        self._inbox.append((job_id, event, time.time()))

    def get(self, job_id: str) -> Job | None:
        """The job with what it has reported until now; None if it isn't known."""
        self.file_events()
        job = self._jobs.get(job_id)
        if job is None or job.ended:
            return job
        return replace(job, events=tuple(self._events[job_id]))

    def of(self, address: str, owner: str | None = None) -> list[str]:
        """The ids of jobs that call this function, of one owner or all, in order."""
        return [
            job.id
            for job in self._jobs.values()
            if job.address == address and owner in (None, job.owner)
        ]

    def owned_by(self, owner: str | None) -> list[str]:
        """The ids of all jobs of one owner, or of all."""
        mine = (owner in (None, job.owner) for job in self._jobs.values())
        return list(compress(self._jobs, mine))

    def start(
        self,
        job_id: str,
        status: str = "starting",
        at: float | None = None,
        worker: str = "",
    ) -> None:
        """A worker gets the job; the job's first event says that it has begun."""
        job = self._jobs[job_id]
        started, tries = at or time.time(), job.tries + (status == "starting")
        now = dict[str, Any](status=status, started=started, tries=tries, worker=worker)
        job = self._jobs[job_id] = replace(job, **now)
        _log(job)

    def worker(self, job_id: str) -> str:
        """The name of the one that has begun with the job; empty where none has."""
        return self._jobs[job_id].worker if job_id in self._jobs else ""

    def put_back(self, job_id: str) -> None:
        """The worker was lost before it had begun: the job waits again."""
        self._jobs[job_id] = replace(self._jobs[job_id], status="queued", started=None)

    def end(self, job_id: str, outcome: Outcome) -> Job:
        """The job as it ended; what ends it a second time changes nothing.

        KeyError where it isn't known.
        """
        job = self.get(job_id) or self._jobs[job_id]
        if job.ended:
            return job
        ended = replace(
            job,
            status=outcome.status,
            value=_without_checkpoint(outcome.value),
            message=outcome.message,
            machine=outcome.machine,
            events=lasting(job.events, outcome.status == "finished"),
            stopped=time.time(),
        )
        self._jobs[job_id] = ended
        _log(ended)
        del self._events[job_id]
        self._forget_one_like(ended)
        return ended

    def _forget_one_like(self, ended: Job) -> None:
        """If too many stay: the owner's oldest, or that of whoever has most."""
        alike = [
            job
            for job in self._jobs.values()
            if job.ended and job.address == ended.address
        ]
        owners = Counter(job.owner for job in alike)
        whose = ended.owner
        if owners[whose] <= IN_MEMORY.each:
            if len(alike) <= IN_MEMORY.all:
                return
            whose = owners.most_common(1)[0][0]
        self.remove(next(job.id for job in alike if job.owner == whose))

    def remove(self, job_id: str) -> None:
        """Forget the job; what it still reports is not taken in."""
        self._jobs.pop(job_id, None)
        self._events.pop(job_id, None)

    def file_events(self) -> None:
        """Give what has come in to its jobs."""
        while self._inbox:
            job_id, event, at = self._inbox.popleft()
            if job_id in self._events:  # else the job has ended
                self._events[job_id].append(event)
                self._on_event(job_id, event)
                if isinstance(event, PickedUp):
                    self.start(job_id, "running", at, event.worker)


def _log(job: Job) -> None:
    """What became of a job, for whoever looks after the server."""
    ids = {"run": job.id, "visitor": job.owner}
    logger.info("%s: %s", job.status, job.address, extra=ids)


def _without_checkpoint(value: Any) -> Any:
    """The value without most of its bytes, which the database has."""
    return replace(value, checkpoint=b"") if isinstance(value, RunResult) else value


def lasting(events: Sequence[Any], finished: bool) -> tuple[Any, ...]:
    """Of a job's events, those that are read after its end.

    What `lasts` tells is told by no result. Where there is no result all events count,
    except for passing ones that a newer one has replaced and that carry no losses.
    """
    if finished:
        return tuple(each for each in events if getattr(each, "lasts", False))
    newest = {type(each): each for each in events}
    return tuple(
        each
        for each in events
        if each is newest[type(each)]
        or not getattr(each, "passes", False)
        or (hasattr(each, "losses") and each.losses)
    )
