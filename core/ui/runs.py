"""A training job as the pages see it: its progress gathered from its events."""

from collections.abc import Container, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import chain
from threading import Lock
from typing import Any

import pandas as pd
import pyarrow as pa

from core.config import IMAGE_TASKS, RunConfig
from core.jobs.job import Job, Stored
from core.results import (
    DRAWN_STEPS,
    Epoch,
    Fit,
    LossPoint,
    RunResult,
    Started,
    StepProgress,
)
from core.store.codec import StoreError
from core.store.results import RunSummary
from core.ui.server import engine, store, visitor

RUN = "core.training:run"  # the function that training jobs call
UNKNOWN = (
    "There is no such run here: the link is incomplete, or whoever trained it has "
    "deleted it."
)
LOOKED_BACK = 12  # runs among which some have losses to compare with
OFFERED = 100  # finished runs of a person, and the newest of all, to choose from
# Of what charts draw: Streamlit sends Arrow tables as they are, in a hundredth of the
# time that a DataFrame takes, and a look at a run that goes on should cost nothing.
RUN_NAME = pa.field("run", pa.string())
CURVE = pa.schema(
    [("step", pa.int32())]
    + [(name, pa.float32()) for name in ("seconds", "loss", "epoch", "smoothed")]
)
EPOCHS = pa.schema(
    [RUN_NAME, ("epoch", pa.int32()), ("split", pa.string())]
    + [(name, pa.float64()) for name in ("loss", "accuracy", "r2")]
)
FORETOLD_SHARE = 0.05  # of a run that is done before the time left is told
SMOOTHED_SHARE = 1 / 20  # of a run's drawn losses that the running mean looks back on


@dataclass(frozen=True, eq=False)
class Run:
    """What is known of a run so far."""

    job: Job
    started: Started | None
    losses: tuple[LossPoint, ...]
    history: tuple[Epoch, ...]
    latest: StepProgress | None
    fit: Fit | None  # the newest, of the task regression

    @property
    def id(self) -> str:
        return self.job.id

    @property
    def config(self) -> RunConfig:
        return self.job.arguments[0]

    @property
    def number(self) -> int:
        return number(self.id, self.job.owner)

    @property
    def name(self) -> str:
        """What it is called beside the others of its owner."""
        return f"Run {self.number}"

    @property
    def result(self) -> RunResult | None:
        return self.job.value

    @property
    def checkpoint(self) -> Stored:
        """What stands for the checkpoint of a run with a result."""
        return Stored(self.id)

    @cached_property
    def curve(self) -> pa.Table:
        """A row a drawn step: step, seconds, loss, epoch, smoothed."""
        columns = zip(*self.losses, strict=True) if self.losses else ((), (), ())
        steps, seconds, losses = columns
        in_all, epochs = self.started.steps if self.started else 1, self.config.epochs
        progress = [step * epochs / in_all for step in steps]
        # Older losses weigh less in the running mean.
        span = max(3, min(in_all, DRAWN_STEPS) * SMOOTHED_SHARE)
        smoothed = pd.Series(losses, dtype=float).ewm(span=span).mean()
        return pa.table([steps, seconds, losses, progress, smoothed], schema=CURVE)

    @property
    def smoothed_loss(self) -> float | None:
        """The running mean of the losses, where it stands now."""
        return self.curve["smoothed"][-1].as_py() if self.losses else None

    @property
    def share(self) -> float:
        """How much of the run is done, 0 to 1."""
        if self.started is None or self.latest is None:
            return 0.0
        return self.latest.step / self.started.steps

    @property
    def seconds_left(self) -> float | None:
        """None at first, when a step with the device's set-up in it says too little."""
        if self.latest is None or self.share < FORETOLD_SHARE:
            return None
        return self.latest.seconds * (1 - self.share) / self.share


def run(job_id: str | None) -> Run | None:
    """The run as it stands now; None where `why_none` says why."""
    try:
        job = engine().job(job_id) if job_id else None
    except StoreError:
        return None
    return view(job) if job is not None and job.address == RUN else None


def why_none(job_id: str) -> str:
    """Why there is no run of this id to see, in a sentence."""
    try:
        engine().job(job_id)
    except StoreError as error:
        return str(error)
    return UNKNOWN


def view(job: Job) -> Run:
    """A training job with its events gathered: each is read once, for all who look."""
    return _ended(job) if job.ended else _gathering(job.id).view(job)


class _Gathering:
    """What the events of a run add up to, as far as they have been read."""

    def __init__(self) -> None:
        self._lock = Lock()  # people look at the same run at once
        self._run: Run | None = None
        self._forget()

    def _forget(self) -> None:
        self._events = 0  # how many have been read
        self._losses: list[LossPoint] = []
        self._history: list[Epoch] = []
        self._started: Started | None = None
        self._latest: StepProgress | None = None
        self._fit: Fit | None = None

    def view(self, job: Job) -> Run:
        """The run as it stands in this job: the same object, if nothing is new."""
        with self._lock:
            if self._run is None or _state(self._run.job) != _state(job):
                if len(job.events) < self._events:
                    self._forget()
                for event in job.events[self._events :]:
                    self._read(event)
                self._events = len(job.events)
                losses, history = tuple(self._losses), tuple(self._history)
                told = (self._started, losses, history, self._latest, self._fit)
                self._run = Run(job, *told)
            return self._run

    def _read(self, event: Any) -> None:
        match event:
            case StepProgress():
                self._losses += event.losses
                self._latest = event
            case Epoch():
                self._history.append(event)
            case Started():
                self._started = event
            case Fit():
                self._fit = event


def _state(job: Job) -> tuple[str, int, int]:
    return job.status, job.place, len(job.events)


@lru_cache(maxsize=128)  # as many as are watched at once, and more
def _gathering(_job_id: str) -> _Gathering:
    return _Gathering()


@lru_cache(maxsize=128)  # those that are on somebody's chart
def _ended(job: Job) -> Run:
    run = _Gathering().view(job)
    if not isinstance(result := job.value, RunResult):
        return run
    # It is complete, where the last events may be late.
    return replace(run, losses=result.losses, history=result.history, fit=result.fit)


def forget() -> None:
    """Keep nothing of any run here; it is gathered again for whoever looks."""
    for each in (_gathering, _ended, _asked_before, _numbers):
        each.cache_clear()


def going_on(owner: str | None = None) -> list[Job]:
    """Runs that wait or are trained, of one visitor or of all, in order."""
    return [job for job in engine().jobs(RUN, owner) if not job.ended]


def newest(owner: str, task: str | None = None) -> str | None:
    """The run that this visitor started last, of a task or any; None without one."""
    own = engine().jobs(RUN, owner)
    if own := [job for job in own if task in (None, job.arguments[0].task)]:
        return own[-1].id
    of = {"task": task} if task else {}
    found = _kept(visitor=owner, limit=1, **of)
    return found[0].id if found else None


def on_show() -> Run | None:
    """The run on images to look at: one's own, else somebody's."""
    own = engine().jobs(RUN, visitor())
    mine = [each for each in own if each.arguments[0].task in IMAGE_TASKS]
    mine = [each for each in mine if not each.ended] or mine
    ids = chain((each.id for each in mine[-1:]), _done(IMAGE_TASKS, visitor()))
    return next(filter(None, map(run, ids)), None) or somebodys(*IMAGE_TASKS)


def somebodys(*tasks: str) -> Run | None:
    """A run of these tasks that goes on, else the newest that has finished."""
    jobs = [each for each in engine().jobs(RUN) if each.arguments[0].task in tasks]
    others = [each for each in jobs if not each.ended]
    done = [each for each in jobs if each.status == "finished"]
    here = (each.id for each in (*others[:1], *done[-1:]))
    return next(filter(None, map(run, chain(here, _done(tasks)))), None)


def _done(tasks: Container[str], owner: str | None = None) -> Iterator[str]:
    """Those that have finished, also before this server began, the newest first."""
    found = _kept(owner, limit=5, status="finished")
    yield from (each.id for each in found if each.task in tasks)


def number(run_id: str, owner: str) -> int:
    """Which of its owner's runs it is, from 1: its name and its color for life."""
    known = _numbers(owner)
    if run_id not in known:
        kept = _kept(owner, limit=None, hidden=True) if owner else []
        jobs = (each.id for each in engine().jobs(RUN, owner))
        for each in (*(run.id for run in reversed(kept)), *jobs, run_id):
            known.setdefault(each, len(known) + 1)
    return known[run_id]


@lru_cache(maxsize=512)
def _numbers(_owner: str) -> dict[str, int]:
    return {}


def earlier(than: Run, most: int) -> list[Run]:
    """Runs with losses that the same visitor started before this one, oldest first.

    Those of the same task and criterion: other losses say nothing beside this one's.
    """
    config, before = than.config, than.job.submitted
    ids = [
        *reversed(_before(than.job.owner, before, config.task, config.criterion)),
        *(
            job.id
            for job in engine().jobs(RUN, than.job.owner)
            if job.submitted < before
            and job.arguments[0].task == config.task
            and job.arguments[0].criterion == config.criterion
        ),
    ]
    found: list[Run] = []
    for job_id in reversed(dict.fromkeys(ids)):
        each = run(job_id) if len(found) < most else None
        if each is not None and each.losses:
            found.insert(0, each)
    return found


def _before(owner: str, before: float, task: str, criterion: str) -> tuple[str, ...]:
    """The newest first; asked of the database once, for looks at a run must not."""
    if store().problem:
        return ()
    try:
        return _asked_before(owner, before, task, criterion)
    except StoreError:
        return ()


@lru_cache(maxsize=512)
def _asked_before(owner: str, before: float, task: str, criterion: str) -> Any:
    found = store().runs.find(
        owner,
        address=RUN,
        task=task,
        criterion=criterion,
        before=before,
        limit=LOOKED_BACK,
    )
    return tuple(each.id for each in found)


@dataclass(frozen=True)
class Finished:
    """A run on images as a list shows it: without its curve and its checkpoint."""

    id: str
    owner: str
    config: RunConfig
    submitted: float  # seconds since 1970
    accuracy: float

    @property
    def name(self) -> str:
        """What its owner calls it; to others, one that no other run has."""
        if self.owner == visitor():
            return f"Run {number(self.id, self.owner)}"
        return f"Somebody's run {self.id[:6]}"

    @classmethod
    def of(cls, job: Job) -> "Finished":
        """Of a job that has such a result."""
        accuracy = job.value.test_accuracy
        return cls(job.id, job.owner, job.value.config, job.submitted, accuracy)


def finished() -> list[Finished]:
    """Finished runs on images: this visitor's first, the newest first."""
    me, found = visitor(), {}
    for row in _kept(me, status="finished") + _kept(status="finished"):
        if row.config and row.accuracy is not None:
            owner = row.visitor or ""
            told = row.id, owner, row.config, row.submitted, row.accuracy
            found[row.id] = Finished(*told)
    for job in engine().jobs(RUN):  # the database may be away
        if isinstance(job.value, RunResult) and job.value.config.has_images:
            found[job.id] = Finished.of(job)
    ordered = sorted(found.values(), key=lambda each: each.submitted, reverse=True)
    return sorted(ordered, key=lambda each: each.owner != me)


def _kept(
    visitor: str | None = None, limit: int | None = OFFERED, **equal: Any
) -> list[RunSummary]:
    """Runs in the database, the newest first; none where it can't be read."""
    try:
        return store().runs.find(visitor, address=RUN, limit=limit, **equal)
    except StoreError:
        return []


def why_not(run_id: str) -> str:
    """Why a run is not among those that `finished` has, in a sentence."""
    asked = run(run_id)
    if asked is None:
        return why_none(run_id)
    if not asked.config.has_images:
        return "That run predicts numbers; this page is for runs on images."
    return f"That run is {asked.job.status}, not finished."


def start(config: RunConfig) -> str:
    """Queue a run of this visitor; returns its id."""
    return engine().submit(RUN, config, owner=visitor())


def loss_table(shown: list[Run]) -> pa.Table:
    """The curves of some runs, with the name of the run in the first column."""
    curves = [
        each.curve.add_column(0, RUN_NAME, pa.repeat(each.name, len(each.losses)))
        for each in shown
    ]
    return pa.concat_tables([pa.schema([RUN_NAME, *CURVE]).empty_table(), *curves])


def epoch_table(shown: list[Run]) -> pa.Table:
    """A row an epoch and a split: run, epoch, split, loss, accuracy, r2."""
    rows = [
        {"run": each.name, "epoch": epoch.epoch, "split": split}
        | {
            figure: getattr(epoch, f"{split}_{figure}")
            for figure in ("loss", "accuracy", "r2")
        }
        for each in shown
        for epoch in each.history
        for split in ("train", "test")
    ]
    return pa.Table.from_pylist(rows, schema=EPOCHS)
