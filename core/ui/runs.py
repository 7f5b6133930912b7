"""A training job as the pages see it: its progress gathered from its events."""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import pandas as pd

from core.config import RunConfig
from core.jobs.job import Job
from core.results import (
    DRAWN_STEPS,
    Epoch,
    Fit,
    LossPoint,
    RunResult,
    Started,
    StepProgress,
)
from core.ui import format
from core.ui.job_panel import latest, reported
from core.ui.server import engine, visitor

RUN = "core.training:run"  # the function that training jobs call
UNKNOWN = (
    "This server does not know that run. It keeps the newest 500, until it restarts."
)
SMOOTHED_SHARE = 1 / 20  # of a run's drawn losses that the running mean looks back on


@dataclass(frozen=True)
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
    def result(self) -> RunResult | None:
        return self.job.value

    @cached_property
    def curve(self) -> pd.DataFrame:
        """A row a drawn step: step, seconds, loss, epoch, smoothed."""
        curve = pd.DataFrame(self.losses, columns=["step", "seconds", "loss"])
        steps = self.started.steps if self.started else 1
        curve["epoch"] = curve["step"] * self.config.epochs / steps
        # Older losses weigh less in the running mean.
        span = max(3, min(steps, DRAWN_STEPS) * SMOOTHED_SHARE)
        curve["smoothed"] = curve["loss"].ewm(span=span).mean()
        return curve

    @property
    def smoothed_loss(self) -> float | None:
        """The running mean of the losses, where it stands now."""
        return float(self.curve["smoothed"].iloc[-1]) if self.losses else None

    @property
    def share(self) -> float:
        """How much of the run is done, 0 to 1."""
        if self.started is None or self.latest is None:
            return 0.0
        return self.latest.step / self.started.steps

    @property
    def seconds_left(self) -> float | None:
        if self.latest is None or not self.share:
            return None
        return self.latest.seconds * (1 - self.share) / self.share


def run(job_id: str | None) -> Run | None:
    """The run as it stands now; None if this server does not know it."""
    job = engine().job(job_id) if job_id else None
    return view(job) if job is not None and job.address == RUN else None


def view(job: Job) -> Run:
    """A training job with its events gathered; once and for all when it has ended."""
    return _ended(job) if job.ended else _gather(job)


def _gather(job: Job) -> Run:
    progress = reported(job, StepProgress)
    losses = tuple(loss for each in progress for loss in each.losses)
    history, fit = tuple(reported(job, Epoch)), latest(job, Fit)
    if isinstance(job.value, RunResult):  # complete, where the last events may be late
        losses, history, fit = job.value.losses, job.value.history, job.value.fit
    started, newest = latest(job, Started), latest(job, StepProgress)
    return Run(job, started, losses, history, newest, fit)


_ended = lru_cache(maxsize=64)(_gather)  # those that are on somebody's chart


def runs(owner: str | None = None) -> list[Run]:
    """The runs that the server knows, of one visitor or of all, oldest first."""
    return [view(job) for job in engine().jobs(RUN, owner)]


def earlier(than: Run) -> list[Run]:
    """Runs that the same visitor started before this one, oldest first.

    Those of the same task and criterion: other losses say nothing beside this one's.
    """
    return [
        each
        for each in runs(than.job.owner)
        if each.job.submitted < than.job.submitted
        and each.config.task == than.config.task
        and each.config.criterion == than.config.criterion
    ]


def finished() -> list[Run]:
    """Finished runs on images: this visitor's first, the newest first."""
    return sorted(
        (each for each in runs() if each.result and each.config.has_images),
        key=lambda each: (each.job.owner == visitor(), each.job.submitted),
        reverse=True,
    )


def why_not(run_id: str) -> str:
    """Why a run is not among those that `finished` has, in a sentence."""
    asked = run(run_id)
    if asked is None:
        return UNKNOWN
    if not asked.config.has_images:
        return "That run predicts numbers; this page is for runs on images."
    return f"That run is {asked.job.status}, not finished."


def start(config: RunConfig) -> str:
    """Queue a run of this visitor; returns its id."""
    return engine().submit(RUN, config, owner=visitor())


def loss_frame(shown: list[Run]) -> pd.DataFrame:
    """The curves of some runs, with the name of the run in the first column."""
    columns = ["run", "step", "seconds", "loss", "epoch", "smoothed"]
    names = format.run_names([each.config for each in shown])
    curves = [
        each.curve.assign(run=name)
        for name, each in zip(names, shown, strict=True)
        if each.losses
    ]
    return pd.concat(curves)[columns] if curves else pd.DataFrame(columns=columns)


def epoch_frame(shown: list[Run]) -> pd.DataFrame:
    """A row an epoch and a split: run, epoch, split, loss, accuracy, r2."""
    names = format.run_names([each.config for each in shown])
    return pd.DataFrame(
        [
            (name, epoch.epoch, *row)
            for name, each in zip(names, shown, strict=True)
            for epoch in each.history
            for row in (
                ("train", epoch.train_loss, epoch.train_accuracy, epoch.train_r2),
                ("test", epoch.test_loss, epoch.test_accuracy, epoch.test_r2),
            )
        ],
        columns=["run", "epoch", "split", "loss", "accuracy", "r2"],
    )
