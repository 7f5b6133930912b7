"""A job and what it reports: plain data, without torch or Dask.

A job waits in one of two lanes, each with workers of its own: "train" is for long jobs,
and "lab" is for short ones.
"""

import importlib
import inspect
import logging
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from operator import attrgetter
from threading import Event
from typing import Any

from core.errors import CancelledError, explain
from core.registry import stored
from core.results import NO_PROGRESS, Progress, RunResult
from core.watch import UNWATCHED, Watch
from to_device.errors import ExplainedError

logger = logging.getLogger(__name__)

ENDED = ("finished", "failed", "cancelled", "interrupted")

# So many ended jobs of each function stay in memory: at most MOST_OF_ONE per owner, and
# MOST_OF_ALL in all. Older jobs are read from the database.
MOST_OF_ONE = 10
MOST_OF_ALL = 100


def host_resource(host: str) -> str:
    """The name of the Dask resource that only this host's training workers have."""
    return f"on {host}"


@stored("checkpoint")
@dataclass(frozen=True)
class Stored:
    """Stands for a run's checkpoint in a job's arguments until a worker gets them."""

    name: str  # the id of the run


@stored("picked_up")
@dataclass(frozen=True)
class PickedUp:
    """The first report of every job: a worker has begun the job."""

    worker: str  # the worker's name


@dataclass(frozen=True)
class Outcome:
    """How a function's call ended.

    The outcome of a failure has no exception: to unpickle it, the server might need
    torch.
    """

    status: str  # one of ENDED; "interrupted" is set only at the server's start
    value: Any = None  # the function's return value
    message: str = ""  # why the call failed
    machine: str = ""  # identity of the worker's machine, see core.devices

    def get(self) -> Any:
        """The value. Raises ExplainedError if the call failed."""
        if self.status == "failed":
            raise ExplainedError(self.message)
        return self.value


def resolve(address: str) -> Any:
    """Import the name at an address such as "core.training:run"; a method has dots.

    A job has a function's address instead of the function, since the server must not
    import torch. Raises ImportError or AttributeError.
    """
    module, _, name = address.partition(":")
    return attrgetter(name)(importlib.import_module(module))


def outcome_of(
    address: str, arguments: tuple[Any, ...], watch: Watch = UNWATCHED
) -> Outcome:
    """Call the function at the address; never raises.

    The function gets `watch` if it has a parameter with this name.
    """
    try:
        watch.check()
        function = resolve(address)
        takes_watch = "watch" in inspect.signature(function).parameters
        value = function(*arguments, **({"watch": watch} if takes_watch else {}))
        return Outcome("finished", value)
    except CancelledError:
        return Outcome("cancelled")
    except Exception as error:
        return Outcome("failed", message=explain(error, arguments))


@dataclass(frozen=True)
class Work:
    kind: str = ""  # jobs of the same kind take about as long for the same amount
    amount: float = 1.0  # a training run's epochs; 1 for other jobs
    assumed: float = 60.0  # guess in seconds, until a job of this kind has run


@dataclass(frozen=True, eq=False)
class Job:
    """A snapshot of a job: the same object until something changes."""

    id: str
    address: str  # "module:function"
    arguments: tuple[Any, ...]
    lane: str  # the group of workers that runs the job: "train" or "lab"
    owner: str = ""  # the visitor who started the job; "": the server itself
    status: str = "queued"  # then "starting", "running", and one of ENDED
    place: int = 0  # the place in the queue, from 1; 0 when the job does not wait
    progress: Progress = NO_PROGRESS  # only training runs have any
    events: tuple[Any, ...] = ()  # what else the function reported, besides progress
    value: Any = None  # the function's return value
    message: str = ""  # why the job failed or has to wait
    submitted: float = field(default_factory=time.time)
    tries: int = 0  # how often the job was given to a worker
    started: float | None = None  # seconds since 1970, like `submitted` and `stopped`
    stopped: float | None = None
    # Durations come from time.monotonic(), which leaves out a laptop's sleep, and which
    # no change of the clock affects: when this app got the job, when a worker got it,
    # and how long the worker had it (None before the end, or without a worker).
    arrived: float = field(default_factory=time.monotonic)
    began: float | None = None
    seconds: float | None = None
    work: Work = Work()
    person: str = ""  # owners with the same person take turns as one; "": the owner
    network: str = ""  # of the owner, see core.serving.request_source; "": unknown
    machine: str = ""  # identity of the machine that did the job, once it has ended
    worker: str = ""  # name of the worker that has begun the job

    @property
    def host(self) -> str:
        """The machine that was chosen for the run; "" means any."""
        if self.lane != "train":
            return ""
        hosts = (getattr(argument, "host", "") for argument in self.arguments)
        return next(filter(None, hosts), "")

    @property
    def resources(self) -> list[str]:
        """The worker's resources that the job takes, one of each."""
        return [self.lane, host_resource(self.host)] if self.host else [self.lane]

    @property
    def ended(self) -> bool:
        return self.status in ENDED

    @property
    def turn_of(self) -> str:
        """Whose turn the job takes: jobs with the same value count as one person's."""
        return self.person or self.owner

    def after(self, event: object) -> "Job":
        progress = self.progress.after(event)
        if progress is not self.progress:
            return replace(self, progress=progress)
        return replace(self, events=(*self.events, event))

    def end(self, outcome: Outcome) -> "Job":
        """The job as it ended, without the checkpoint's bytes, which the database has.

        A finished job keeps only the events whose class sets `lasts`: its value has
        what the others reported.
        """
        value, progress, events = outcome.value, self.progress, self.events
        if isinstance(value, RunResult):  # has all progress, even if events are late
            names = ("losses", "history", "fit", "changes")
            complete = {name: getattr(value, name) for name in names}
            progress = replace(progress, latest=None, **complete)
            value = replace(value, checkpoint=b"")
        if outcome.status == "finished":
            events = tuple(e for e in events if getattr(e, "lasts", False))
        return replace(
            self,
            status=outcome.status,
            value=value,
            message=outcome.message,
            machine=outcome.machine,
            progress=progress,
            events=events,
            stopped=time.time(),
            seconds=None if self.began is None else time.monotonic() - self.began,
        )


class Jobs:
    """The jobs in memory.

    Hold the engine's lock to call any method but `receive` and `wait_for_events`.
    """

    def __init__(self, on_event: Callable[[Job, Any], None]) -> None:
        """`on_event` gets each event, and its job with the event in it."""
        self._on_event = on_event
        self._jobs: dict[str, Job] = {}
        self._inbox: deque[tuple[str, Any, float, float]] = deque()
        self._has_events = Event()

    def receive(self, job_id: str, event: Any) -> None:
        """Take an event in without waiting; `file_events` gives it to its job."""
        self._inbox.append((job_id, event, time.time(), time.monotonic()))
        self._has_events.set()

    def wait_for_events(self) -> None:
        """Return once there may be events that `file_events` hasn't seen."""
        self._has_events.wait()
        self._has_events.clear()

    def stop_waiting(self) -> None:
        """Have `wait_for_events` return, though there may be no events."""
        self._has_events.set()

    def file_events(self) -> None:
        """Give each event to its job, in the order in which they came."""
        while self._inbox:
            job_id, event, at, began = self._inbox.popleft()
            job = self._jobs.get(job_id)
            if job is None or job.ended:
                continue
            if isinstance(event, PickedUp):
                begun = replace(job, status="running", started=at, began=began)
                self.add(replace(begun, worker=event.worker))
            else:
                self._jobs[job_id] = job.after(event)
            try:
                self._on_event(self._jobs[job_id], event)
            except Exception:  # the job has the event; later events must come, too
                logger.exception("an event of job %s could not be stored", job_id)

    def get(self, job_id: str) -> Job | None:
        """The job with all events that were filed; None if it isn't in memory."""
        return self._jobs.get(job_id)

    def ids(self, address: str | None = None, owner: str | None = None) -> list[str]:
        """The ids of all jobs, or of one function's or owner's, the oldest first."""
        return [
            job.id
            for job in self._jobs.values()
            if address in (None, job.address) and owner in (None, job.owner)
        ]

    def add(self, job: Job) -> Job:
        self._jobs[job.id] = job
        ids = {"run": job.id, "visitor": job.owner}
        logger.info("%s: %s", job.status, job.address, extra=ids)
        return job

    def start(self, job_id: str) -> None:
        job = self._jobs[job_id]
        given = replace(job, status="starting", tries=job.tries + 1)
        self.add(replace(given, started=time.time(), began=time.monotonic()))

    def put_back(self, job_id: str) -> None:
        """The worker was lost before the job began, so the job waits again."""
        waiting = replace(self._jobs[job_id], status="queued", started=None, began=None)
        self._jobs[job_id] = waiting

    def end(self, job_id: str, outcome: Outcome) -> Job:
        """End a job; if its function has too many ended jobs, drop one of them.

        What the job reported before its end is filed first. The dropped job is the
        owner's oldest one, if the owner has too many; otherwise, it is the oldest one
        of the owner who has the most.
        """
        self.file_events()
        ended = self.add(self._jobs[job_id].end(outcome))
        ids = self.ids(ended.address)
        alike = [job for job in map(self._jobs.__getitem__, ids) if job.ended]
        owners, owner = Counter(job.owner for job in alike), ended.owner
        if owners[owner] <= MOST_OF_ONE:
            owner = owners.most_common(1)[0][0]
        if owners[ended.owner] > MOST_OF_ONE or len(alike) > MOST_OF_ALL:
            self.remove(next(job.id for job in alike if job.owner == owner))
        return ended

    def remove(self, job_id: str) -> None:
        """Forget the job and all that it still reports."""
        self._jobs.pop(job_id, None)
