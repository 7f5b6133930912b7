"""Stored runs: the queue's jobs, and what training runs have reported.

A row is committed when a job is queued, when it begins, now and then while it runs, and
when it ends. Reports from a run that was deleted or has ended change nothing.
"""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from sqlalchemy import delete, exists, func, select, update
from sqlalchemy.orm import Session, aliased, undefer

from core.config import RunConfig
from core.results import (
    NO_PROGRESS,
    Change,
    Epoch,
    Fit,
    LossPoint,
    Progress,
    RunResult,
    Started,
)
from core.store import codec
from core.store.codec import DamagedError
from core.store.tables import (
    SETTINGS,
    Checkpoint,
    Class,
    Curve,
    EpochOfRun,
    Measurement,
    Member,
    Row,
    RunSummary,
    clean,
)
from core.store.visitors import ensure_visitor
from core.store.writer import Rows, Write

logger = logging.getLogger(__name__)

GOING_ON = ("queued", "running")
LONGEST_NAME = 80  # characters


@dataclass(frozen=True)
class StoredRun:
    summary: RunSummary
    arguments: tuple[Any, ...]
    progress: Progress = NO_PROGRESS  # its `fit` is None if `value` has the fit
    # The function's return value, if it has finished; the events of an interrupted job
    value: Any = None


class Runs(Rows):
    def enqueue(self, arguments: tuple[Any, ...], **columns: Any) -> Write:
        """Store a waiting job; `columns` are further fields of its RunSummary.

        Raises TypeError if the arguments aren't plain data.
        """
        is_training = [type(value) for value in arguments] == [RunConfig]
        columns["settings"] = dict(vars(arguments[0])) if is_training else None
        text = codec.dumps(arguments)
        run = RunSummary(seq=0, status="queued", arguments=text, **columns)
        open_class = select(Class.id).where(
            Class.is_open, Class.id == Member.class_id, Member.visitor == run.visitor
        )

        def work(session: Session) -> None:
            if run.visitor:
                ensure_visitor(session, run.visitor)
            if not session.get(RunSummary, run.id):
                last = session.scalar(select(func.max(RunSummary.seq))) or 0
                joined = session.scalar(open_class)
                session.add(replace(run, seq=last + 1, class_id=joined))

        return self.writer.put(work, len(run.arguments))

    def begin(self, run_id: str) -> None:
        """Note that a worker has begun the job, so that no restart runs it again."""
        self._report(run_id, dict(status="running", started=time.time()), of=["queued"])

    def started(self, run_id: str, event: Started) -> None:
        values = dict[str, Any](steps=event.steps, parameters=event.parameters)
        values["device_name"] = clean(event.environment.device_name)
        self._report(run_id, values | {"start": codec.dumps(event)})

    def progress(
        self,
        run_id: str,
        step: int,
        losses: Sequence[LossPoint],
        fit: Fit | None = None,
    ) -> None:
        """Store the step that the run has reached, and the newest losses."""
        values = {"step": step} | ({"fit": codec.dumps(fit)} if fit else {})
        part = Curve(run_id=run_id, step=step, points=codec.pack(losses))
        self._report(run_id, values, [part] if losses else [])

    def epoch(self, run_id: str, event: Epoch) -> None:
        figures = {"accuracy": event.test_accuracy, "r2": event.test_r2}
        self._report(run_id, {"step": event.step} | figures, [_row(run_id, event)])

    def steered(self, run_id: str, changes: Sequence[Change]) -> None:
        """Store all changes that the owner has made to the learning rate."""
        self._report(run_id, {"changes": rates(changes)})

    def events(self, run_id: str, events: tuple[Any, ...]) -> None:
        """Store what a job has reported besides a run's progress.

        Until the job has ended, this is its value. Raises TypeError if the events
        aren't plain data.
        """
        self._report(run_id, {"value": codec.dumps(events)})

    def end(
        self, run_id: str, status: str, value: Any = None, message: str = ""
    ) -> Write:
        """Note how the job has ended, and the value that its function has returned."""
        values: dict[str, Any] = dict(status=status, message=clean(message))
        values["ended"] = time.time()
        rows: list[Row] = []
        if isinstance(result := value, RunResult):
            values |= dict(
                accuracy=result.test_accuracy,
                r2=None if result.config.has_images else result.r2,
                seconds=result.timed_seconds,
                step=result.history[-1].step,
                changes=rates(result.changes),
            )
            step = result.losses[-1].step if result.losses else 0
            rows = [
                *(_row(run_id, epoch) for epoch in result.history),
                Curve(run_id=run_id, step=step, points=codec.pack(result.losses)),
                Checkpoint(run_id=run_id, state_dict=result.checkpoint),
            ]
            value = replace(result, history=(), losses=(), checkpoint=b"")
        values["value"] = None  # in place of the events
        try:
            if value is not None:
                values |= {"value": codec.dumps(value), "fit": None}
        except TypeError as error:
            logger.warning("could not save the result of %s: %s", run_id, error)
        return self._report(run_id, values, rows, of=GOING_ON, is_whole=bool(rows))

    def _report(
        self,
        run_id: str,
        values: dict[str, Any],
        rows: Sequence[Row] = (),
        of: Sequence[str] = ("running",),
        is_whole: bool = False,
    ) -> Write:
        """If a run's status is in `of`, set its `values`, and add `rows`.

        With `is_whole`, the stored parts of the run's curve are deleted first.
        """
        matches = (RunSummary.id == run_id) & RunSummary.status.in_(of)
        change = update(RunSummary).where(matches).values(values)
        parts = delete(Curve).where(Curve.run_id == run_id)

        def work(session: Session) -> None:
            if session.connection().execute(change).rowcount:
                if is_whole:
                    session.execute(parts)
                for row in rows:
                    session.merge(row)

        columns = chain(values.values(), *(vars(row).values() for row in rows))
        size = sum(len(value) for value in columns if isinstance(value, str | bytes))
        return self.writer.put(work, size)

    def recover(self) -> list[StoredRun]:
        """As the app starts, mark running jobs as interrupted, and return waiting jobs.

        The waiting jobs are in the order in which they came. A job that this version of
        the app can't read is marked as failed instead. Raises StoreError.
        """
        now = time.time()

        def interrupt(session: Session) -> None:
            running = select(RunSummary).where(RunSummary.status == "running")
            for run in session.scalars(running):
                run.status, run.ended = "interrupted", now
                run.message = interrupted(run.step, run.steps)

        self.writer.now(interrupt)
        queued = select(RunSummary).where(RunSummary.status == "queued")
        query = queued.options(undefer(RunSummary.arguments)).order_by(RunSummary.seq)
        waiting = []
        for row in self.read(query):
            try:
                waiting.append(StoredRun(row, codec.loads(row.arguments, "This run")))
            except DamagedError as error:
                self.end(row.id, "failed", message=str(error))
        return waiting

    def interrupted(self, limit: int) -> list[str]:
        """The ids of jobs that a stop of the app ended, the oldest first.

        Training runs are left out, and jobs whose owner has ended another job of the
        same function since. Raises StoreError.
        """
        later = aliased(RunSummary)
        has_later = exists().where(
            later.visitor == RunSummary.visitor,
            later.address == RunSummary.address,
            later.seq > RunSummary.seq,
            later.status.in_(("finished", "failed", "cancelled")),
        )
        query = (
            select(RunSummary.id)
            .where(RunSummary.status == "interrupted", RunSummary.settings.is_(None))
            .where(RunSummary.visitor.is_not(None), ~has_later)
            .order_by(RunSummary.seq.desc())
        )
        return self.read(query.limit(limit))[::-1]

    def find(
        self,
        visitor: str | None = None,
        *,
        hidden: bool = False,
        limit: int | None = None,
        before: float | None = None,
        **equal: Any,
    ) -> list[RunSummary]:
        """Runs of one visitor or of all, the newest first. Raises StoreError.

        Runs of the app itself have the visitor "". Only runs submitted before
        `before` count. `equal` says which values columns or text settings must
        have: find(task="sprites").
        """
        query = select(RunSummary).order_by(RunSummary.seq.desc()).limit(limit)
        if visitor is not None:
            query = query.where(RunSummary.visitor == (visitor or None))
        if not hidden:
            query = query.where(~RunSummary.hidden)
        if before is not None:
            query = query.where(RunSummary.submitted < before)
        for name, value in equal.items():
            if name in SETTINGS:
                query = query.where(RunSummary.settings[name].as_string() == value)
            else:
                query = query.where(getattr(RunSummary, name) == value)
        return self.read(query)

    def get(self, run_id: str, with_checkpoint: bool = True) -> StoredRun | None:
        """The whole run; None if no run has the id.

        Raises StoreError or DamagedError.
        """
        subject, run_id = "This run", clean(run_id)
        large = ("arguments", "start", "value", "fit")
        columns = [undefer(getattr(RunSummary, name)) for name in large]
        texts = select(EpochOfRun.value).where(EpochOfRun.run_id == run_id)
        parts = select(Curve.points).where(Curve.run_id == run_id)

        def rows(session: Session) -> tuple[Any, ...] | None:
            run = session.get(RunSummary, run_id, options=columns)
            if run is None:
                return None
            history = session.scalars(texts.order_by(EpochOfRun.epoch)).all()
            packed = session.scalars(parts.order_by(Curve.step)).all()
            weights = session.get(Checkpoint, run_id) if with_checkpoint else None
            return run, history, packed, weights

        found = self.database.read(rows)
        if found is None:
            return None
        run, history, packed, weights = found
        arguments = codec.loads(run.arguments, subject)
        start, value, fit = (
            codec.loads(text, subject) if text else None
            for text in (run.start, run.value, run.fit)
        )
        epochs = tuple(codec.loads(text, subject) for text in history)
        losses = codec.unpack(packed, subject)
        if isinstance(value, RunResult):
            state_dict = weights.state_dict if weights else b""
            value = replace(value, history=epochs, losses=losses, checkpoint=state_dict)
        by_step = (run.changes or {}).items()
        changes = tuple(Change(int(step), rate) for step, rate in by_step)
        progress = Progress(start, losses, epochs, fit=fit, changes=changes)
        return StoredRun(run, arguments, progress, value)

    def models_of(self, visitor: str) -> list[str]:
        """The ids of the runs that a visitor made or measured. Raises StoreError."""
        own = select(RunSummary.id).where(RunSummary.visitor == visitor)
        subjects = select(Measurement.subject).where(Measurement.visitor == visitor)
        return [run_id for run_id in {*self.read(own), *self.read(subjects)} if run_id]

    def checkpoint(self, run_id: str) -> bytes | None:
        """The state_dict as torch.save wrote it; None if the run has none."""
        row = self.database.read(lambda session: session.get(Checkpoint, clean(run_id)))
        return row.state_dict if row else None

    # The methods below make changes that a visitor or a teacher asks for. Each method
    # returns how many of the visitor's runs it changed, and raises StoreError if the
    # database doesn't respond.

    def rename(self, run_id: str, visitor: str, name: str) -> int:
        """Name a run; "" takes the name away."""
        name = " ".join(clean(name).split())[:LONGEST_NAME]
        return self._change([run_id], visitor, name=name)

    def hide(self, run_ids: Sequence[str], visitor: str, hidden: bool = True) -> int:
        return self._change(run_ids, visitor, hidden=hidden)

    def withhold(self, run_id: str, visitor: str, withheld: bool = True) -> int:
        """Hide a run from the class, even if its owner shows it; or stop hiding it."""
        return self._change([run_id], visitor, withheld=withheld)

    def delete(self, run_ids: Sequence[str], visitor: str) -> int:
        return self._change(run_ids, visitor)

    def _change(self, run_ids: Sequence[str], visitor: str, **values: Any) -> int:
        """Set columns of a visitor's runs; without `values`, delete the runs."""
        own = RunSummary.id.in_(run_ids) & (RunSummary.visitor == visitor)
        change = update(RunSummary).values(values) if values else delete(RunSummary)
        statement = change.where(own)
        return self.writer.now(
            lambda session: session.connection().execute(statement).rowcount,
            erases=not values,
        )


def interrupted(step: int, steps: int | None) -> str:
    """The message of a run that ended because the app stopped."""
    if not steps:
        return "The app stopped while this job was running. Start the job again."
    if not step:
        return "The app stopped just after this run began. Start the run again."
    where = f"step {step:,} of {steps:,}"
    return f"The app stopped when this run was at {where}. Start the run again."


def rates(changes: Sequence[Change]) -> dict[str, float] | None:
    """Learning rates, keyed by the step before each change; None without changes."""
    return {str(change.step): change.learning_rate for change in changes} or None


def _row(run_id: str, epoch: Epoch) -> EpochOfRun:
    return EpochOfRun(run_id=run_id, epoch=epoch.epoch, value=codec.dumps(epoch))
