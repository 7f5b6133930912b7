"""Training runs for pages: jobs with a name, a number, a loss curve, and tables."""

from bisect import bisect_right
from collections.abc import Container, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, chain
from math import ceil, isfinite, log
from statistics import quantiles
from time import time
from typing import Any

import pandas as pd
import pyarrow as pa
import streamlit as st

from core.config import IMAGE_TASKS, RECIPES, RunConfig
from core.jobs.estimates import RECENT_SECONDS
from core.jobs.job import Job, Stored
from core.jobs.measurements import KINDS
from core.registry import PACE, RUN
from core.results import DRAWN_STEPS, FIRST_STEPS, Progress, RunResult
from core.store.cache import Cache
from core.store.codec import StoreError
from core.store.runs import rates
from core.store.tables import RunSummary
from core.ui import format, last_measurement, spoilers
from core.ui.charts import spread_labels
from core.ui.server import engine, room, store, visitor
from to_device.names import SIMULATED
from to_device.words import Words

KINDS.add(PACE)
words = Words(__file__)
LOOKED_BACK = 12  # how many stored runs are read to find some that tell something
OFFERED = 100  # how many runs a list offers, the newest first
# Runs' charts draw Arrow tables, since each poll of a run sends its curve again.
# Streamlit sends an Arrow table as it is, in a hundredth of a DataFrame's time.
RUN_NAME = pa.field("run", pa.string())
NAME_AT = pa.field("name_at", pa.float32())
CURVE = pa.schema(
    [("step", pa.int32())]
    + [
        (name, pa.float32())
        for name in ("seconds", "loss", "epoch", "smoothed", "rate")
    ]
)
EPOCHS = pa.schema(
    [RUN_NAME, ("epoch", pa.int32()), ("split", pa.string()), ("step", pa.int32())]
    + [(name, pa.float64()) for name in ("seconds", "loss", "accuracy", "r2")]
)
SMOOTHED_SHARE = 1 / 20  # the share of a run's drawn losses that a running mean spans
CHANCE = 0.11  # the accuracy of guessing among ten classes, noise included
FAR = 2.0  # a run diverged only if a loss is above this many times the loss of guessing
NAME_SHARE = 0.1  # of a loss chart's height that a run's name takes at its line's end
# A cut axis ends at this many times the loss that 95% of the steps stay below.
ROOM = 1.2


@dataclass(frozen=True, eq=False)
class Run(Progress):
    """A training job and its progress."""

    job: Job = field(kw_only=True)
    # Like jobs, runs are compared by identity: `view` returns the same run until
    # something changes.
    __eq__, __hash__ = object.__eq__, object.__hash__

    @property
    def id(self) -> str:
        return self.job.id

    @property
    def config(self) -> RunConfig:
        return self.job.arguments[0]

    @property
    def is_simulated(self) -> bool:
        """Whether the run is on the simulated accelerator, which isn't timed."""
        return self.config.device == SIMULATED

    @property
    def number(self) -> int:
        return number(self.id, self.job.owner)

    @property
    def name(self) -> str:
        return f"Run {self.number}"

    @property
    def result(self) -> RunResult | None:
        return self.job.value

    @property
    def checkpoint(self) -> Stored:
        return Stored(self.id)

    @cached_property
    def curve(self) -> pa.Table:
        """A row per drawn step: step, seconds, loss, epoch, smoothed, rate.

        In the first row after somebody set the learning rate by hand, `rate`
        is this learning rate; in all other rows, it is None.
        """
        points = zip(*self.losses, strict=True) if self.losses else ((), (), ())
        steps, seconds, losses = points
        if self.is_simulated:
            seconds = (None,) * len(steps)
        in_all, epochs = self.started.steps if self.started else 1, self.config.epochs
        progress = [step * epochs / in_all for step in steps]
        # Older losses weigh less in the running mean.
        span = max(3, min(in_all, DRAWN_STEPS) * SMOOTHED_SHARE)
        smoothed = pd.Series(losses, dtype=float).ewm(span=span).mean()
        marks: list[float | None] = [None] * len(steps)
        for change in self.changes:
            if (row := bisect_right(steps, change.step)) < len(steps):
                marks[row] = change.learning_rate
        columns = steps, seconds, losses, progress, smoothed, marks
        return pa.table([*columns], schema=CURVE)

    @property
    def smoothed_loss(self) -> float | None:
        """The newest running mean of the losses; None without losses."""
        return self.curve["smoothed"][-1].as_py() if self.losses else None

    @cached_property
    def diverged(self) -> str:
        """Sentences on how the run diverged, and which rate to try; "" if it didn't.

        A run that learns nothing hasn't diverged: its loss stays near that of guessing.
        """
        images, loss = self.config.has_images, self.smoothed_loss or 0.0
        first = self.losses[0].loss if self.losses else 0.0
        far = FAR * (log(10) if images else max(first, 1.0))
        if not any(point.loss > far for point in self.losses):
            return ""
        is_lost = len(self.losses) > FIRST_STEPS and loss > far
        reason = f"the loss is {loss:.2g}, far higher than guessing would give"
        if self.history and images:
            accuracy = self.history[-1].test_accuracy or 0.0
            is_lost = accuracy < CHANCE
            reason = f"the accuracy is {accuracy:.2%}, about what guessing would give"
        elif self.history:
            is_lost = (self.history[-1].test_r2 or 0.0) < 0
            reason = "R² is below 0, so a constant would fit better"
        recipe = RECIPES[self.config.model]["learning_rate"]
        last = self.changes[-1] if self.changes else self.config
        rate = min(last.learning_rate / 10, recipe)
        advice = f"Try a learning rate of {rate:g}."
        return f"**Diverged**: {reason}. {advice}" if is_lost else ""

    @property
    def seconds_left(self) -> float | None:
        return None if self.is_simulated else super().seconds_left


def run(job_id: str | None) -> Run | None:
    """The run with this id as it is now, or None; then `why_none` says why."""
    try:
        job = engine().job(job_id) if job_id else None
    except StoreError:
        return None
    return view(job) if job is not None and job.address == RUN else None


def why_none(job_id: str) -> str:
    try:
        engine().job(job_id)
    except StoreError as error:
        return str(error)
    return words("runs.unknown")


def view(job: Job) -> Run:
    """The run of a training job; the same object until the job changes."""
    return _views(job)


def _view(job: Job) -> Run:
    return Run(job=job, **vars(job.progress))


_views = Cache(_view, 256)  # so that everybody who watches a run shares its curve


def forget(owner: str) -> None:
    """Drop what caches hold of an owner whose data is deleted."""
    _views.drop(lambda _, run: run.job.owner == owner)
    for cached in (_before, _numbers):
        cached.drop(lambda arguments, _: arguments[0] == owner)


def going_on(owner: str | None = None) -> list[Job]:
    return [job for job in engine().jobs(RUN, owner) if not job.ended]


def newest(owner: str, task: str | None = None) -> str | None:
    """The id of the run that `owner` started last (on `task`); None without one."""
    own = engine().jobs(RUN, owner)
    if own := [job for job in own if task in (None, job.arguments[0].task)]:
        return own[-1].id
    before = stored_runs(owner, limit=1, **({"task": task} if task else {}))
    return before[0].id if before else None


def on_show() -> Run | None:
    """The run on images for Home: the visitor's, or else the server's."""
    own = engine().jobs(RUN, visitor())
    mine = [job for job in own if job.arguments[0].task in IMAGE_TASKS]
    going_on = [job for job in mine if not job.ended]
    begun = [job for job in mine if job.progress.started]
    kept = [job for job in begun if job.status != "cancelled"]
    here = going_on[:1] or kept[-1:] or begun[-1:] or mine[-1:]
    ids = chain((job.id for job in here), _before_restart(IMAGE_TASKS, visitor()))
    return next(filter(None, map(run, ids)), None) or idle_run(*IMAGE_TASKS)


def newer_without_result(than: Run) -> Run | None:
    """The visitor's newest run, if it is newer, and has ended without a result."""
    last = run(newest(visitor()))
    if last is None or last.id == than.id or last.job.status not in format.ENDINGS:
        return None
    return last


def finished_ids() -> set[str]:
    """The ids of this visitor's finished runs, with at most two of other sessions."""
    before = st.session_state.get("finished_before")
    if before is None:
        rows = stored_runs(visitor(), limit=2, hidden=True, status="finished")
        before = {row.id for row in rows}
    # Memory keeps only the newest jobs, so the session keeps what it has seen.
    jobs = engine().jobs(RUN, visitor())
    ids = before | {job.id for job in jobs if job.status == "finished"}
    st.session_state.finished_before = ids
    return ids


def are_hidden() -> bool:
    """Whether others' runs are hidden, since they'd answer what a first run reaches.

    Until their first run has finished, students of an open class see no others' runs,
    nor records, unless the wall has shown the result.
    """
    if not spoilers.is_student() or spoilers.are_told(spoilers.FIRST_RUN):
        return False
    return spoilers.are_held(spoilers.FIRST_RUN) or not finished_ids()


def others() -> str | None:
    """Whose runs pages offer besides the visitor's own: the argument of `stored_runs`.

    Members of a class get None, which stands for everybody. Others get "", which stands
    for the server itself: strangers' experiments would be a bad first example. While
    others' runs are hidden, students get only their own.
    """
    if are_hidden():
        return visitor()
    return None if room().may_see(visitor()) else ""


def idle_run(*tasks: str) -> Run | None:
    """The server's own run on these tasks: one in training, or the newest finished one.

    None for people in an open class, or about to join it, since they guess what their
    first run will reach.
    """
    if room().may_see(visitor()) or are_hidden():
        return None
    jobs = [job for job in engine().jobs(RUN, "") if job.arguments[0].task in tasks]
    going_on = [job for job in jobs if not job.ended]
    finished = [job for job in jobs if job.status == "finished"]
    here = (job.id for job in (*going_on[:1], *finished[-1:]))
    return next(filter(None, map(run, chain(here, _done(tasks, "")))), None)


def _done(tasks: Container[str], owner: str) -> Iterator[str]:
    """The ids of the owner's newest finished runs on `tasks` in the database."""
    rows = stored_runs(owner, limit=5, status="finished")
    yield from (row.id for row in rows if row.task in tasks)


def _before_restart(tasks: Container[str], owner: str) -> Iterator[str]:
    """The ids of the owner's runs on `tasks` in the database, the best to show first.

    It is the newest run, unless that was canceled or interrupted and others finished.
    """
    rows = [row for row in stored_runs(owner, limit=1) if row.task in tasks]
    cut = "cancelled", "interrupted"
    yield from (row.id for row in rows if row.status not in cut)
    yield from _done(tasks, owner)
    yield from (row.id for row in rows)


def number(run_id: str, owner: str) -> int:
    """A run's number among its owner's runs, from 1.

    The number decides the run's color, and its name if nobody gave it one.
    """
    numbers = _numbers(owner)
    if run_id not in numbers:
        rows = stored_runs(owner, limit=None, hidden=True) if owner else []
        jobs = (job.id for job in engine().jobs(RUN, owner))
        for job_id in (*(row.id for row in reversed(rows)), *jobs, run_id):
            numbers.setdefault(job_id, len(numbers) + 1)
    return numbers[run_id]


def count(owner: str) -> int:
    """How many runs the owner has started, even before the app was restarted."""
    ids = {row.id for row in stored_runs(owner, limit=None, hidden=True)}
    return len(ids | {job.id for job in engine().jobs(RUN, owner)})


def _no_numbers(_owner: str) -> dict[str, int]:
    return {}


_numbers = Cache(_no_numbers, 512)  # a dictionary of each owner: {run's id: number}


def earlier(later: Run, most: int) -> list[Run]:
    """Up to `most` runs that the owner started before `later`, oldest first.

    Only runs count that have losses, the same task, and the same criterion: other
    losses can't be compared.
    """
    owner, before = later.job.owner, later.job.submitted
    task, criterion = later.config.task, later.config.criterion
    stored: tuple[str, ...] = ()
    with suppress(StoreError):
        stored = () if store().problem else _before(owner, before, task, criterion)
    recent = (
        job.id
        for job in engine().jobs(RUN, owner)
        if job.submitted < before
        and (job.arguments[0].task, job.arguments[0].criterion) == (task, criterion)
    )
    runs: list[Run] = []
    for job_id in reversed(dict.fromkeys((*reversed(stored), *recent))):
        candidate = run(job_id) if len(runs) < most else None
        if candidate is not None and candidate.losses:
            runs.insert(0, candidate)
    return runs


def _read_before(
    owner: str, before: float, task: str, criterion: str
) -> tuple[str, ...]:
    """The ids of an owner's runs for `earlier`, the newest first. Raises StoreError."""
    like: dict[str, Any] = {"task": task, "criterion": criterion, "before": before}
    rows = store().runs.find(owner, address=RUN, limit=LOOKED_BACK, **like)
    return tuple(row.id for row in rows)


_before = Cache(_read_before, 512)  # since each poll of a run asks again


def summary(run: Run) -> RunSummary:
    """A run in memory, in the form in which the store lists runs."""
    job, started, last = run.job, run.started, run.history[-1] if run.history else None
    return RunSummary(
        id=job.id,
        seq=0,
        visitor=job.owner,
        address=job.address,
        lane=job.lane,
        round=0,
        status=job.status,
        message=job.message,
        submitted=job.submitted,
        started=job.started,
        ended=job.stopped,
        step=run.latest.step if run.latest else 0,
        steps=started.steps if started else None,
        device_name=started.environment.device_name if started else None,
        parameters=started.parameters if started else None,
        accuracy=last.test_accuracy if last else None,
        r2=last.test_r2 if last else None,
        seconds=run.result.timed_seconds if run.result else None,
        changes=rates(run.changes),
        settings=vars(run.config),
    )


def finished() -> list[RunSummary]:
    """Finished runs on images: the visitor's, then those of `others`; newest first."""
    me, rows = visitor(), dict[str, RunSummary]()
    for owner in (me, others()):
        stored = stored_runs(owner, status="finished")
        rows |= {row.id: row for row in stored if row.accuracy is not None}
        for job in engine().jobs(RUN, owner):  # in case the database can't be read
            if isinstance(job.value, RunResult) and job.value.config.has_images:
                rows[job.id] = summary(view(job))
    return sorted(rows.values(), key=lambda row: (row.visitor != me, -row.submitted))


def stored_runs(
    visitor: str | None = None, limit: int | None = OFFERED, **equal: Any
) -> list[RunSummary]:
    """Stored runs that match `equal`, newest first; [] if none can be read."""
    try:
        return store().runs.find(visitor, address=RUN, limit=limit, **equal)
    except StoreError:
        return []


def expected_seconds(config: RunConfig) -> float | None:
    """How long a run will take here, in seconds; None if nothing tells.

    Similar runs that have ended tell it best, since they met what else this machine
    does. Before the first one, it is what the idle machine would take, times what other
    runs took lately against their own such figure.
    """
    seconds = engine().expected_seconds(RUN, config)
    if seconds is None and (measured := last_measurement.newest(PACE)):
        idle = measured.value.seconds(config)
        return idle and idle * measured.value.load(_lately())
    return seconds


def _lately() -> Iterator[tuple[RunConfig, float]]:
    """What finished runs on this machine took, in seconds, the newest run first.

    After a restart, there are none in memory, so stored runs come last; of these, only
    runs that ended a short time ago tell how busy the machine is.
    """
    jobs = engine().jobs(RUN)
    for job in reversed(jobs):
        if job.status == "finished" and job.seconds and not job.host:
            yield job.arguments[0], job.seconds
    known, since = {job.id for job in jobs}, time() - RECENT_SECONDS
    for row in stored_runs(limit=LOOKED_BACK, hidden=True, status="finished"):
        config, is_recent = row.config, (row.ended or 0.0) >= since
        is_new = row.id not in known
        if config and not config.host and row.seconds and is_recent and is_new:
            yield config, row.seconds


def start(config: RunConfig) -> str:
    return engine().submit(RUN, config, owner=visitor())


def differences(runs: Sequence[Run]) -> list[str]:
    """Return a text for each run: its values of all settings in which the runs differ.

    The text also says if somebody changed the learning rate during the run.
    """
    settings = format.differences([run.config for run in runs])
    return [
        ", ".join(filter(None, [text, format.steered(run)]))
        for text, run in zip(settings, runs, strict=True)
    ]


def loss_table(runs: Sequence[Run], names: Sequence[str] = ()) -> pa.Table:
    """A table of all the runs' curves, with `names` or else the runs' own names.

    In a curve's last row, the column `name_at` has the height of the run's name, and
    in all other rows None.
    """
    names = names or [run.name for run in runs]
    drawn = [(run, name) for run, name in zip(runs, names, strict=True) if run.losses]
    top = top_loss(runs) or most_loss(runs)
    ends = [run.smoothed_loss or 0.0 for run, _ in drawn]
    ends = [end if isfinite(end) else top for end in ends]
    heights = spread_labels(ends, NAME_SHARE * top, top)
    curves = []
    for (run, name), height in zip(drawn, heights, strict=True):
        rows = run.curve.num_rows
        curve = run.curve.add_column(0, RUN_NAME, pa.repeat(name, rows))
        name_at = pa.array([*[None] * (rows - 1), height], NAME_AT.type)
        curves.append(curve.append_column(NAME_AT, name_at))
    schema = pa.schema([RUN_NAME, *CURVE, NAME_AT])
    return pa.concat_tables([schema.empty_table(), *curves])


def most_loss(runs: Sequence[Run]) -> float:
    return max((point.loss for run in runs for point in run.losses), default=0.0)


def top_loss(runs: Sequence[Run]) -> float | None:
    """Where to end the loss axis, so that a few huge losses don't flatten the curves.

    None if the axis can show all losses.
    """
    return _top([(run, [point.loss for point in run.losses]) for run in runs])


def top_epoch_loss(runs: Sequence[Run]) -> float | None:
    """The same for the epochs' losses, on the training and on the test data."""
    pairs = [(run, [(n.train_loss, n.test_loss) for n in run.history]) for run in runs]
    return _top([(run, [*chain.from_iterable(each)]) for run, each in pairs])


def _top(curves: Sequence[tuple[Run, Sequence[float]]]) -> float | None:
    """Nearly all losses are below it, and the first ones: before a run has learned."""
    drawn = [(run, losses) for run, losses in curves if losses]
    healthy = [losses for run, losses in drawn if not run.diverged]
    # With a copy of the first loss, since quantiles() needs at least two values.
    tops = [
        max(losses[0], quantiles([*losses, losses[0]], n=20)[-1])
        for losses in healthy or [losses for _, losses in drawn]
    ]
    top = 2 * ROOM * max(tops, default=0.0)
    most = max((max(losses) for _, losses in drawn), default=0.0)
    return ceil(top) / 2 if most > top else None


def epoch_table(runs: Sequence[Run], names: Sequence[str] = ()) -> pa.Table:
    """Two rows per epoch, train and test. Column seconds: the training time so far."""
    rows = [
        {"run": name, "epoch": epoch.epoch, "split": split, "step": epoch.step}
        | {"seconds": None if run.is_simulated else seconds}
        | {
            figure: getattr(epoch, f"{split}_{figure}")
            for figure in ("loss", "accuracy", "r2")
        }
        for run, name in zip(runs, names or [run.name for run in runs], strict=True)
        for epoch, seconds in zip(
            run.history, accumulate(epoch.seconds for epoch in run.history), strict=True
        )
        for split in ("train", "test")
    ]
    return pa.Table.from_pylist(rows, schema=EPOCHS)
