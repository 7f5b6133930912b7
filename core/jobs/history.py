"""Writes jobs to the database, and reads them back.

A job's row is written when the job is submitted, as it reports, and when it ends. Of
the functions that write, only `wait` waits for the database.
"""

import logging
import math
import time
from contextlib import suppress
from dataclasses import replace
from threading import Lock
from typing import Any, NamedTuple

from core.config import RunConfig
from core.jobs.estimates import work
from core.jobs.job import MOST_OF_ALL, Job, PickedUp, Stored
from core.registry import RUN
from core.results import Change, Epoch, Fit, RunResult, Started, StepProgress
from core.store.cache import Cache
from core.store.codec import DamagedError, StoreError
from core.store.runs import StoredRun, interrupted
from core.store.store import Store
from core.store.writer import Write
from to_device.errors import ExplainedError
from to_device.words import Words

logger = logging.getLogger(__name__)
words = Words(__file__)

PROGRESS_SECONDS = 2.0  # a crash loses about this much of a run
LATELY_SECONDS, MOST_LATELY = 4 * 3600.0, 200  # of runs that `lately` reads
LATE = 100  # at most this many ended jobs stay in memory until their rows are written
# A job's fields that have columns of the same names.
COLUMNS = ("id", "address", "arguments", "lane", "submitted")
CACHED = 128  # at most this many ended jobs that the database returned stay in memory


class _Late(NamedTuple):
    """An ended job and its whole value, to read until the row is written."""

    job: Job
    value: Any
    write: Write


class History:
    """Keeps the rows of jobs.

    Any thread may call the methods, but the calls about one job must come in order.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        # When each job's progress was last written, and how many losses are written.
        self._written: dict[str, tuple[float, int]] = {}
        self._lock = Lock()  # guards the field below
        self._late: dict[str, _Late] = {}
        self._read = Cache(self._read_ended, CACHED)

    def queue(self, job: Job, round: int) -> Write | None:
        """Write a waiting job and its round (see `recover`); None if not kept.

        The server's own measurements aren't kept: after a restart, the server makes
        them again.
        """
        is_training = any(isinstance(value, RunConfig) for value in job.arguments)
        if not (job.owner or is_training):
            return None
        columns = {name: getattr(job, name) for name in COLUMNS}
        try:
            return self._store.runs.enqueue(
                visitor=job.owner or None, round=round, **columns
            )
        except TypeError as error:
            logger.warning("job %s was not saved: %s", job.id, error)
            return None

    def lately(self) -> list[tuple[Job, float]]:
        """Runs that finished in the last hours on any of the app's own workers.

        The oldest comes first. Each has its settings and its seconds, and comes with
        the seconds since it ended.
        """
        try:
            rows = self._store.runs.find(
                address=RUN, limit=MOST_LATELY, hidden=True, status="finished"
            )
        except StoreError:
            return []
        now, found = time.time(), []
        for row in reversed(rows):
            config, ago = row.config, now - (row.ended or 0.0)
            is_timed = row.seconds is not None and 0 <= ago < LATELY_SECONDS
            if config is None or config.host or not is_timed:
                continue
            job = Job(row.id, RUN, (config,), row.lane, row.visitor or "", row.status)
            todo = work(RUN, job.arguments)
            found.append((replace(job, seconds=row.seconds, work=todo), ago))
        return found

    def wait(self, write: Write | None) -> None:
        try:
            if write is not None:
                self._store.writer.wait(write)
        except Exception:  # the database refuses the row; the job goes on
            logger.exception("could not save a job")

    def record(self, job: Job, event: Any) -> None:
        """Write the event.

        Steps and fits are written every PROGRESS_SECONDS, and so are events that aren't
        a training run's progress.
        """
        runs = self._store.runs
        match event:
            case PickedUp():
                runs.begin(job.id)
            case Started():
                runs.started(job.id, event)
            case Epoch():
                runs.epoch(job.id, event)
            case Change():
                runs.steered(job.id, job.progress.changes)
            case StepProgress() | Fit():
                last, _ = self._written.setdefault(job.id, (time.monotonic(), 0))
                if time.monotonic() - last >= PROGRESS_SECONDS:
                    self._keep_progress(job)
            case _:
                last, _ = self._written.get(job.id, (-math.inf, 0))
                if time.monotonic() - last >= PROGRESS_SECONDS:
                    self._keep_events(job)

    def _keep_progress(self, job: Job) -> None:
        _, count = self._written.get(job.id, (0.0, 0))
        progress = job.progress
        step = max((e.step for e in (progress.latest, progress.fit) if e), default=0)
        if step:
            new = progress.losses[count:]
            self._store.runs.progress(job.id, step, new, progress.fit)
        self._written[job.id] = time.monotonic(), len(progress.losses)

    def _keep_events(self, job: Job) -> None:
        """Write what else the job has reported, such as a lab's readings so far."""
        _, count = self._written.get(job.id, (0.0, 0))
        self._written[job.id] = time.monotonic(), count
        try:
            self._store.runs.events(job.id, job.events)
        except TypeError as error:
            logger.warning("events of job %s were not saved: %s", job.id, error)

    def end(self, job: Job, value: Any) -> None:
        """Write how a job has ended, and its value, with a run's checkpoint."""
        if job.id in self._written and not isinstance(value, RunResult):
            self._keep_progress(job)  # a result has all of the progress
        self._written.pop(job.id, None)
        write = self._store.runs.end(job.id, job.status, value, job.message)
        with self._lock:
            late = [row for row in self._late.values() if not row.write.ended]
            late = [*late, _Late(job, value, write)][-LATE:]
            self._late = {row.job.id: row for row in late}

    def forget(self, owner: str, *job_ids: str) -> None:
        """Forget jobs whose rows are deleted: the owner's late ones, and `job_ids`."""
        with self._lock:
            late = [row for row in self._late.values() if row.job.owner != owner]
            self._late = {row.job.id: row for row in late}
        for job_id in job_ids:
            self._written.pop(job_id, None)
        self._read.drop(lambda _, job: job.owner == owner)

    def recover(self) -> list[tuple[Job, int]]:
        """The jobs that waited when the server ended, in order, each with its round.

        The round is the job's place in the fair order of core.jobs.queue.
        """
        try:
            runs = self._store.runs.recover()
        except StoreError as error:
            logger.warning("waiting jobs could not be restored: %s", error)
            return []
        waiting = []
        for run in runs:
            todo = work(run.summary.address, run.arguments)
            waiting.append((_job(run, work=todo), run.summary.round))
        return waiting

    def interrupted(self) -> list[Job]:
        """Jobs other than training runs that a stop of the server ended.

        Their pages look for them in memory.
        """
        jobs = []
        try:
            for job_id in self._store.runs.interrupted(MOST_OF_ALL):
                with suppress(DamagedError):  # of another version of this app
                    jobs.append(self.job(job_id))
        except StoreError as error:
            logger.warning("interrupted jobs could not be read: %s", error)
        return [job for job in jobs if job is not None]

    def job(self, job_id: str) -> Job | None:
        """An ended job, always the same object, or None. Raises StoreError."""
        with self._lock:
            if job_id in self._late:
                return self._late[job_id].job
        try:
            return self._read(job_id)
        except KeyError:  # `Cache` keeps no errors: the row may come later
            return None

    def _read_ended(self, job_id: str) -> Job:
        stored = self._store.runs.get(job_id, with_checkpoint=False)
        if stored is None:
            raise KeyError(job_id)
        row, value, progress = stored.summary, stored.value, stored.progress
        events: tuple[Any, ...] = ()
        if row.status != "finished":
            events, value = value or (), None
        if value is None and row.step:
            losses = progress.losses
            seconds = losses[-1].seconds if losses else 0.0
            latest = StepProgress(row.step, losses, 0.0, seconds)
            progress = replace(progress, latest=latest)
        if isinstance(value, RunResult):
            progress = replace(progress, fit=value.fit)
        end = {"status": row.status, "message": row.message, "stopped": row.ended}
        job = _job(stored, started=row.started, value=value, progress=progress, **end)
        job = replace(job, events=events)
        if not job.ended:  # the server ended during it, and `recover` failed later
            why = interrupted(row.step, row.steps)
            job = replace(job, status="interrupted", message=why)
        return job

    def checkpoint(self, stored: Stored) -> bytes:
        """A run's checkpoint. Raises ExplainedError if it is gone or can't be read."""
        with self._lock:
            late = self._late.get(stored.name)
        if late and isinstance(late.value, RunResult):
            return late.value.checkpoint
        checkpoint = self._store.runs.checkpoint(stored.name)
        if checkpoint is None:
            raise ExplainedError(words("history.no_checkpoint"))
        return checkpoint


def _job(stored: StoredRun, **fields: Any) -> Job:
    row = stored.summary
    return Job(
        id=row.id,
        address=row.address,
        arguments=stored.arguments,
        lane=row.lane,
        owner=row.visitor or "",
        submitted=row.submitted,
        **fields,
    )
