"""What of a server's jobs goes into the database, and comes back from it.

Each job has a row from the click on. What it reports becomes rows while it goes on, and
its end is written when it comes. Nothing here waits for the database but who says so.
"""

import logging
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import lru_cache
from threading import Lock
from typing import Any

from core.config import RunConfig
from core.errors import ExplainedError
from core.jobs.estimates import work
from core.jobs.job import ENDED, Job, PickedUp, Stored
from core.results import Epoch, Fit, LossPoint, RunResult, Started, StepProgress
from core.store.codec import StoreError
from core.store.results import KeptRun
from core.store.runs import interrupted
from core.store.store import Store
from core.store.writer import Write

logger = logging.getLogger(__name__)

PROGRESS_SECONDS = 2.0  # of a run that a crash may take, about
LATE = 100  # jobs that have ended whose rows may still have to be written
READ = 128  # jobs of earlier that stay in memory once somebody has looked at them

GONE = "The checkpoint of that run is no longer kept. Choose another run."


@dataclass
class _Progress:
    """What a run has reported since the last row."""

    written: float = 0.0
    step: int = 0
    losses: list[LossPoint] = field(default_factory=list)
    fit: Fit | None = None


class History:
    """The rows of jobs; safe to use from threads.

    What is told to it about one job has to come in order.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._progress: dict[str, _Progress] = {}  # of the runs that go on
        self._lock = Lock()  # for the next
        self._late: OrderedDict[str, tuple[Write, Job, Any]] = OrderedDict()
        self._read = lru_cache(READ)(self._read_ended)

    # What happens to a job

    def queue(self, job: Job, round: int) -> Write | None:
        """A job waits, in this round; None where it is not kept.

        What the server measures by itself is not: it would do so again.
        """
        is_training = any(isinstance(each, RunConfig) for each in job.arguments)
        if not (job.owner or is_training):
            return None
        what = job.id, job.owner, job.address, job.arguments
        try:
            return self._store.runs.enqueue(*what, job.lane, round, job.submitted)
        except TypeError as error:
            logger.warning("job %s is not kept: %s", job.id, error)
            return None

    def wait(self, write: Write | None) -> None:
        """Wait until it is committed, or can't be for now: then the problem is told."""
        try:
            if write is not None:
                self._store.writer.wait(write)
        except Exception:  # the database has something against it; the job goes on
            logger.exception("a job is not kept")

    def hear(self, job_id: str, event: Any) -> None:
        """A job reports something."""
        runs = self._store.runs
        match event:
            case PickedUp():
                runs.begin(job_id)
            case Started():
                runs.started(job_id, event)
            case Epoch():
                runs.epoch(job_id, event)
            case StepProgress() | Fit():
                now = time.monotonic()
                new = self._progress.setdefault(job_id, _Progress(now))
                new.step = event.step
                if isinstance(event, Fit):
                    new.fit = event
                else:
                    new.losses += event.losses
                if now - new.written >= PROGRESS_SECONDS:
                    self._keep_progress(job_id)
                    self._progress[job_id] = _Progress(now)

    def _keep_progress(self, job_id: str) -> None:
        new = self._progress.pop(job_id, None)
        if new is not None and new.step:
            self._store.runs.progress(job_id, new.step, new.losses, new.fit)

    def end(self, job: Job, value: Any) -> None:
        """A job has ended, with this value: the job may have it without its bytes."""
        self._keep_progress(job.id)
        write = self._store.runs.end(job.id, job.status, value, job.message)
        with self._lock:
            self._late[job.id] = write, job, value
            while self._late and (len(self._late) > LATE or self._first_is_written()):
                self._late.popitem(last=False)

    def _first_is_written(self) -> bool:
        return next(iter(self._late.values()))[0].ended

    def forget(self, owner: str, *job_ids: str) -> None:
        """Rows of an owner are deleted, and these of their jobs may go on."""
        with self._lock:
            for job_id in [k for k, v in self._late.items() if v[1].owner == owner]:
                del self._late[job_id]
        for job_id in job_ids:
            self._progress.pop(job_id, None)
        self._read.cache_clear()

    # What comes back

    def recover(self) -> list[tuple[Job, int]]:
        """At the start: the jobs that wait, in their order, and the round of each."""
        try:
            kept = self._store.runs.recover()
        except StoreError as error:
            logger.warning("what waited does not come back: %s", error)
            return []
        return [
            (
                Job(
                    each.id,
                    each.address,
                    each.arguments,
                    each.lane,
                    each.visitor,
                    submitted=each.submitted,
                    work=work(each.address, each.arguments),
                ),
                each.round,
            )
            for each in kept
        ]

    def job(self, job_id: str) -> Job | None:
        """A job that has ended, the same object at every look; None: not known.

        Raises StoreError where it can't be read.
        """
        with self._lock:
            if job_id in self._late:
                return self._late[job_id][1]
        try:
            return self._read(job_id)
        except KeyError:  # which is not remembered, since it may come to be known
            return None

    def _read_ended(self, job_id: str) -> Job:
        kept = self._store.runs.get(job_id, with_checkpoint=False)
        if kept is None:
            raise KeyError(job_id)
        return _job(kept)

    def checkpoint(self, stored: Stored) -> bytes:
        """The bytes; ExplainedError where they are no longer kept, or can't be read."""
        with self._lock:
            _, _, value = self._late.get(stored.name, (None, None, None))
        if isinstance(value, RunResult):
            return value.checkpoint
        found = self._store.runs.checkpoint(stored.name)
        if found is None:
            raise ExplainedError(GONE)
        return found


def _job(kept: KeptRun) -> Job:
    """A job as it was when it ended."""
    row = kept.summary
    events: list[Any] = [kept.start] if kept.start else []
    if kept.value is None:
        if row.step:
            seconds = kept.losses[-1].seconds if kept.losses else 0.0
            events.append(StepProgress(row.step, kept.losses, 0.0, seconds))
        events += [*kept.history, *filter(None, [kept.fit])]
    status, message = row.status, row.message
    if status not in ENDED:  # a start at which the database could not be read
        status, message = "interrupted", interrupted(row.step, row.steps)
    return Job(
        row.id,
        row.address,
        kept.arguments,
        row.lane,
        row.visitor or "",
        status,
        events=tuple(events),
        value=kept.value,
        message=message,
        submitted=row.submitted,
        started=row.started,
        stopped=row.ended,
    )
