"""What is known of a run when it is read back: plain data, without torch or SQL."""

from dataclasses import dataclass, fields
from typing import Any

from core.config import RunConfig
from core.results import Epoch, Fit, LossPoint, Started

SETTINGS = tuple(field.name for field in fields(RunConfig))


@dataclass(frozen=True)
class QueuedRun:
    """A job that waits, with all that a queue needs to hand it out."""

    id: str
    visitor: str  # empty: the app itself
    address: str  # of the function
    arguments: tuple[Any, ...]
    lane: str
    round: int
    submitted: float  # seconds since 1970, as all times here


@dataclass(frozen=True)
class RunSummary:
    """A run as lists show it; its columns in core.store.tables are named the same."""

    id: str
    seq: int  # the order they came in
    visitor: str | None  # None: the app itself
    address: str
    lane: str
    round: int
    status: str  # "queued", "running", "finished", "failed", "cancelled", "interrupted"
    message: str  # why it failed or was interrupted
    submitted: float
    started: float | None
    ended: float | None
    step: int  # reached
    steps: int | None  # in the whole run
    # The settings of a training run; None for other jobs, as all that follows
    task: str | None
    model: str | None
    criterion: str | None
    device: str | None
    host: str | None
    feed: str | None
    epochs: int | None
    batch_size: int | None
    learning_rate: float | None
    weight_decay: float | None
    schedule: str | None
    augment: bool | None
    seed: int | None
    num_workers: int | None
    pin_memory: bool | None
    non_blocking: bool | None
    # What came of it
    device_name: str | None
    parameters: int | None
    accuracy: float | None  # on the test set, 0 to 1
    r2: float | None
    seconds: float | None
    name: str  # that the visitor gave it; empty: none
    hidden: bool  # by the visitor, from lists
    withheld: bool  # by a teacher, from what a class sees

    @property
    def config(self) -> RunConfig | None:
        """None for what is no training run."""
        if self.task is None:
            return None
        return RunConfig(**{name: getattr(self, name) for name in SETTINGS})


@dataclass(frozen=True)
class KeptRun:
    """All that is kept of a run."""

    summary: RunSummary
    arguments: tuple[Any, ...]
    start: Started | None  # None: it never began, or is no training run
    history: tuple[Epoch, ...]
    losses: tuple[LossPoint, ...]
    value: Any  # what the function returned; None where it has not finished
    fit: Fit | None  # of a regression that has not
