"""A job, and all that a server knows of: plain data, without torch or Dask."""

import time
from collections import deque
from dataclasses import dataclass, field, replace
from typing import Any

from core.errors import ExplainedError

ENDED = ("finished", "failed", "cancelled")
KEPT = 500  # ended jobs; half a megabyte each at most: events and a checkpoint


@dataclass(frozen=True)
class PickedUp:
    """A worker has begun with a job; the first event of every job."""

    worker: str


@dataclass(frozen=True)
class Outcome:
    """How work ended. An exception is a sentence: to read one might import torch."""

    status: str  # one of ENDED
    value: Any = None  # what the function returned
    message: str = ""  # why it failed

    def get(self) -> Any:
        """The value; ExplainedError if the work failed."""
        if self.status == "failed":
            raise ExplainedError(self.message)
        return self.value


@dataclass(frozen=True, eq=False)
class Job:
    """A piece of work as it stood when it was looked at.

    A job that has ended is the same object at every look.
    """

    id: str
    address: str  # of the function
    arguments: tuple[Any, ...]
    lane: str  # "train" or "lab"
    owner: str = ""  # whoever started it, by a name that only they have
    status: str = "queued"  # then "starting", "running", and one of ENDED
    place: int = 0  # in the queue, from 1; 0 when it does not wait
    events: tuple[Any, ...] = ()
    value: Any = None  # what the function returned
    message: str = ""  # why it failed
    submitted: float = field(default_factory=time.time)
    tries: int = 0  # how often it was given to a worker
    started: float | None = None  # seconds since 1970, as `submitted`

    @property
    def ended(self) -> bool:
        return self.status in ENDED


class Jobs:
    """The jobs of a server, with the events of those that go on.

    Whoever uses it sees to it that only one thread does; `receive` is for any thread.
    """

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._events: dict[str, list[Any]] = {}  # of jobs that have not ended
        self._inbox: deque[tuple[str, Any]] = deque()  # events not yet filed

    def add(self, job: Job) -> None:
        """Know this job from now on, and forget the oldest that have ended."""
        ended = [each.id for each in self._jobs.values() if each.ended]
        for job_id in ended[: max(0, len(ended) - KEPT)]:
            del self._jobs[job_id]
        self._jobs[job.id] = job
        self._events[job.id] = []

    def receive(self, job_id: str, event: Any) -> None:
        """Take an event in, without waiting; it is filed at the next look."""
        self._inbox.append((job_id, event))

    def get(self, job_id: str) -> Job | None:
        """The job with what it has reported until now; None if it isn't known."""
        self._file_events()
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

    def start(self, job_id: str, status: str = "starting") -> None:
        """A worker gets the job; the job's first event says that it has begun."""
        job = self._jobs[job_id]
        tries = job.tries + (status == "starting")
        self._jobs[job_id] = replace(
            job, status=status, started=time.time(), tries=tries
        )

    def put_back(self, job_id: str) -> None:
        """The job's worker was lost before it had begun: it waits again."""
        self._jobs[job_id] = replace(self._jobs[job_id], status="queued", started=None)

    def end(self, job_id: str, outcome: Outcome) -> None:
        """The job has ended; what ends it a second time changes nothing."""
        job = self.get(job_id)
        if job is not None and not job.ended:
            self._jobs[job_id] = replace(job, **vars(outcome))
            del self._events[job_id]

    def _file_events(self) -> None:
        while self._inbox:
            job_id, event = self._inbox.popleft()
            if job_id in self._events:  # else the job has ended
                self._events[job_id].append(event)
                if isinstance(event, PickedUp):
                    self.start(job_id, "running")
