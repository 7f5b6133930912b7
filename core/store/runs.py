"""Runs: the rows of the queue, and what training brings while it goes on.

A row is committed when a job is queued, when it begins, now and then while it runs, and
when it ends. What comes after a run was deleted or has ended changes nothing.
"""

import logging
import time
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from sqlalchemy import Connection, Row, delete, func, select, update

from core.config import RunConfig
from core.results import Epoch, Fit, LossPoint, RunResult, Started
from core.store import codec
from core.store.codec import DamagedError
from core.store.database import Database
from core.store.results import KeptRun, QueuedRun, RunSummary
from core.store.tables import (
    add,
    checkpoints,
    classes,
    clean,
    curves,
    details,
    epochs,
    members,
    put,
    runs,
)
from core.store.visitors import know
from core.store.writer import Write, Writer

logger = logging.getLogger(__name__)

GOING_ON = ("queued", "running")
LONGEST_NAME = 80  # characters
COLUMNS = [runs.c[field.name] for field in fields(RunSummary)]


class Runs:
    """Reads anywhere, writes through the one writer."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database, self._writer = database, writer

    # While it waits and runs

    def queue(
        self,
        run_id: str,
        visitor: str,
        address: str,
        arguments: tuple[Any, ...],
        lane: str = "train",
        round: int = 0,
        submitted: float | None = None,
    ) -> bool:
        """Keep a job that waits; True once it is committed.

        False where that can't be now: it is kept in memory, and the problem is told.
        Raises what `enqueue` does.
        """
        more = dict[str, Any](lane=lane, round=round, submitted=submitted)
        write = self.enqueue(run_id, visitor, address, arguments, **more)
        return self._writer.wait(write)

    def enqueue(
        self,
        run_id: str,
        visitor: str,
        address: str,
        arguments: tuple[Any, ...],
        lane: str,
        round: int,
        submitted: float | None,
    ) -> Write:
        """Keep a job that waits; nobody waits for that.

        TypeError where the arguments are no plain data.
        """
        text = codec.dumps(arguments)
        config = next((each for each in arguments if isinstance(each, RunConfig)), None)
        is_training = config is not None and arguments == (config,)
        row = dict(
            id=run_id,
            address=address,
            arguments=text,
            lane=lane,
            round=round,
            status="queued",
            message="",
            submitted=time.time() if submitted is None else submitted,
            step=0,
            name="",
            hidden=False,
            withheld=False,
            **(vars(config) if is_training else {}),
        )

        def work(connection: Connection) -> None:
            if visitor:
                know(connection, visitor)
            last = select(func.coalesce(func.max(runs.c.seq), 0) + 1).scalar_subquery()
            of = {"visitor": visitor or None, "class_id": _open_class_of(visitor)}
            add(connection, runs, seq=last, **of, **row)

        return self._writer.put(work, len(text))

    def begin(self, run_id: str) -> None:
        """A worker has begun with it: after a restart it does not run again."""
        now = time.time()

        def work(connection: Connection) -> None:
            _change(connection, run_id, ("queued",), status="running", started=now)

        self._writer.put(work)

    def started(self, run_id: str, event: Started) -> None:
        """Training begins: how long it is, and where."""
        text = codec.dumps(event)

        def work(connection: Connection) -> None:
            if _change(
                connection,
                run_id,
                steps=event.steps,
                device_name=clean(event.environment.device_name),
                parameters=event.parameters,
            ):
                put(connection, details, run_id=run_id, started=text)

        self._writer.put(work, len(text))

    def progress(
        self,
        run_id: str,
        step: int,
        losses: Sequence[LossPoint],
        fit: Fit | None = None,
    ) -> None:
        """The run has come to this step; the losses are those since the last call."""
        packed = codec.pack(losses)
        text = codec.dumps(fit) if fit else ""

        def work(connection: Connection) -> None:
            if not _change(connection, run_id, step=step):
                return
            if losses:
                put(connection, curves, run_id=run_id, step=step, points=packed)
            if text:
                put(connection, details, run_id=run_id, fit=text)

        self._writer.put(work, len(packed) + len(text))

    def epoch(self, run_id: str, event: Epoch) -> None:
        """An epoch has ended."""
        text = codec.dumps(event)
        accuracy, r2 = event.test_accuracy, event.test_r2

        def work(connection: Connection) -> None:
            if _change(connection, run_id, step=event.step, accuracy=accuracy, r2=r2):
                put(connection, epochs, run_id=run_id, epoch=event.epoch, value=text)

        self._writer.put(work, len(text))

    def end(
        self, run_id: str, status: str, value: Any = None, message: str = ""
    ) -> Write:
        """The job has ended, with what its function returned."""
        values: dict[str, Any] = dict(status=status, message=clean(message))
        values["ended"] = time.time()
        result = value if isinstance(value, RunResult) else None
        if result is not None:
            values |= dict(
                accuracy=result.test_accuracy,
                r2=None if result.config.has_images else result.r2,
                seconds=result.seconds,
                step=result.history[-1].step,
            )
            value = replace(result, history=(), losses=(), checkpoint=b"")
        try:
            text = None if value is None else codec.dumps(value)
        except TypeError as error:
            logger.warning("the result of %s is not kept: %s", run_id, error)
            text = None
        curve = codec.pack(result.losses) if result else b""

        def work(connection: Connection) -> None:
            if not _change(connection, run_id, GOING_ON, **values):
                return
            if text is not None:
                put(connection, details, run_id=run_id, value=text, fit=None)
            if result is not None:
                _keep(connection, run_id, result, curve)

        checkpoint = result.checkpoint if result else b""
        return self._writer.put(work, len(text or "") + len(curve) + len(checkpoint))

    def recover(self) -> list[QueuedRun]:
        """At a start: what ran was interrupted; what waits, in its order.

        A row of the queue that this version can't read has failed.
        Raises StoreError where the database does not answer.
        """
        now = time.time()

        def work(connection: Connection) -> list[Row[Any]]:
            ran = select(runs.c.id, runs.c.step, runs.c.steps)
            for row in connection.execute(ran.where(runs.c.status == "running")):
                message = interrupted(row.step, row.steps)
                ended = dict[str, Any](status="interrupted", message=message, ended=now)
                _change(connection, row.id, ("running",), **ended)
            names = (field.name for field in fields(QueuedRun))
            waits = select(*(runs.c[name] for name in names)).order_by(runs.c.seq)
            return list(connection.execute(waits.where(runs.c.status == "queued")))

        found = []
        for row in self._writer.now(work):
            values = row._asdict() | {"visitor": row.visitor or ""}
            try:
                values["arguments"] = codec.loads(row.arguments, "This run")
                found.append(QueuedRun(**values))
            except DamagedError as error:
                self.end(row.id, "failed", message=str(error))
        return found

    # To look at

    def find(
        self,
        visitor: str | None = None,
        *,
        hidden: bool = False,
        limit: int | None = None,
        before: float | None = None,
        **equal: Any,
    ) -> list[RunSummary]:
        """Runs of one visitor or of all, the newest first.

        `before` is when they were submitted; `equal` names columns, as in
        find(task="sprites"). Raises StoreError.
        """
        query = select(*COLUMNS).order_by(runs.c.seq.desc()).limit(limit)
        if visitor is not None:
            query = query.where(runs.c.visitor == visitor)
        if not hidden:
            query = query.where(~runs.c.hidden)
        if before is not None:
            query = query.where(runs.c.submitted < before)
        for name, value in equal.items():
            query = query.where(runs.c[name] == value)
        with self._database.read() as connection:
            return [RunSummary(*row) for row in connection.execute(query)]

    def get(self, run_id: str, with_checkpoint: bool = True) -> KeptRun | None:
        """The whole run; None if there is none of that id.

        Raises StoreError, or DamagedError where it can't be read.
        """
        with self._database.read() as connection:
            here = runs.c.id == clean(run_id)
            query = select(*COLUMNS, runs.c.arguments).where(here)
            row = connection.execute(query).first()
            if row is None:
                return None
            *columns, arguments = row
            of_run = _rows_of(connection, run_id)
            found = of_run(details.c.started, details.c.value, details.c.fit)
            texts = of_run(epochs.c.value, by=epochs.c.epoch)
            packed = of_run(curves.c.points, by=curves.c.step)
            states: list[Any] = [(b"",)]
            if with_checkpoint:
                states = of_run(checkpoints.c.state_dict)
        start, value, fit = found[0] if found else (None, None, None)
        what = "This run"
        history = tuple(codec.loads(text, what) for (text,) in texts)
        losses = codec.unpack((part for (part,) in packed), what)
        value = codec.loads(value, what) if value else None
        if isinstance(value, RunResult) and states:
            state = states[0][0]
            value = replace(value, history=history, losses=losses, checkpoint=state)
        return KeptRun(
            summary=RunSummary(*columns),
            arguments=codec.loads(arguments, what),
            start=codec.loads(start, what) if start else None,
            history=history,
            losses=losses,
            value=value,
            fit=codec.loads(fit, what) if fit else None,
        )

    def checkpoint(self, run_id: str) -> bytes | None:
        """The state_dict as torch.save wrote it; None where there is none."""
        with self._database.read() as connection:
            found = _rows_of(connection, clean(run_id))(checkpoints.c.state_dict)
        return found[0][0] if found else None

    # What a visitor does with their own; how many of those are theirs

    def rename(self, run_id: str, visitor: str, name: str) -> int:
        """Give a run a name; the empty one takes it away."""
        words = " ".join(clean(name).split())[:LONGEST_NAME]
        return self._changed(update(runs).values(name=words), [run_id], visitor)

    def hide(self, run_ids: Sequence[str], visitor: str, hidden: bool = True) -> int:
        """Leave runs out of lists, or show them again."""
        return self._changed(update(runs).values(hidden=hidden), run_ids, visitor)

    def withhold(self, run_id: str, visitor: str, withheld: bool = True) -> int:
        """Keep a run from what a class sees, whatever its owner shows; or end that."""
        change = update(runs).values(withheld=withheld)
        return self._changed(change, [run_id], visitor)

    def delete(self, run_ids: Sequence[str], visitor: str) -> int:
        """Delete runs for good; what they still report is not kept."""
        return self._changed(delete(runs), run_ids, visitor, erases=True)

    def _changed(
        self, change: Any, run_ids: Sequence[str], visitor: str, erases: bool = False
    ) -> int:
        mine = runs.c.id.in_(run_ids) & (runs.c.visitor == visitor)

        def work(connection: Connection) -> int:
            return connection.execute(change.where(mine)).rowcount

        return int(self._writer.now(work, erases=erases))


def interrupted(step: int, steps: int | None) -> str:
    """Why a run that was going on has ended without a result."""
    if not step:
        return "The app stopped when this had just begun. Start it again."
    whole = f" of {steps:,}" if steps else ""
    return f"The app stopped when this run was at step {step:,}{whole}. Start it again."


def _open_class_of(visitor: str) -> Any:
    """The class that is open, if the visitor is in it: a part of a statement."""
    query = select(classes.c.id).join(members, members.c.class_id == classes.c.id)
    return query.where(
        classes.c.is_open, members.c.visitor == visitor
    ).scalar_subquery()


def _change(
    connection: Connection,
    run_id: str,
    those: Sequence[str] = ("running",),
    /,
    **values: Any,
) -> bool:
    """Change a run of those statuses; False where it has another, or is gone."""
    fitting = (runs.c.id == run_id) & runs.c.status.in_(those)
    return connection.execute(update(runs).where(fitting).values(values)).rowcount == 1


def _keep(connection: Connection, run_id: str, result: RunResult, curve: bytes) -> None:
    """What a finished run is made of, each in the table for it."""
    for each in result.history:
        text = codec.dumps(each)
        put(connection, epochs, run_id=run_id, epoch=each.epoch, value=text)
    connection.execute(delete(curves).where(curves.c.run_id == run_id))
    step = result.losses[-1].step if result.losses else 0
    put(connection, curves, run_id=run_id, step=step, points=curve)
    put(connection, checkpoints, run_id=run_id, state_dict=result.checkpoint)


def _rows_of(connection: Connection, run_id: str) -> Any:
    """A function that reads columns of a run's rows in a table of its own."""

    def rows(*columns: Any, by: Any = None) -> list[Any]:
        query = select(*columns).where(columns[0].table.c.run_id == run_id)
        query = query if by is None else query.order_by(by)
        return list(connection.execute(query))

    return rows
