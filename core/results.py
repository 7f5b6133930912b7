"""A run's reports and results: plain data for other processes, without torch."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import fmean
from typing import Any, NamedTuple, Self

from core.config import RunConfig
from core.measure.environment import Environment
from core.registry import stored

DRAWN_STEPS = 600  # losses that a run keeps for its chart; a screen shows no more
FIRST_STEPS = 100  # a run keeps all losses of these steps: there, the loss falls fast
FORETOLD_SHARE = 0.05  # the time left is shown once this share of a run is done
PAUSE_SECONDS = 60.0  # how long a run may pause in all, since others wait
WALL = 50  # images in the picture wall; each epoch reports the predictions for them


@stored("started")
@dataclass(frozen=True)
class Started:
    environment: Environment
    parameters: int
    steps: int  # in the whole run
    train_images: int  # or points, for regression
    test_images: int


@stored("fit")
@dataclass(frozen=True)
class Fit:
    """A regression model's outputs at one step."""

    step: int  # steps made so far
    outputs: tuple[float, ...]  # for each x in core.data.curve.POSITIONS
    noise: float | None  # the criterion's learned scale; None if it learns none


class LossPoint(NamedTuple):
    step: int  # from 1
    seconds: float  # training time up to this step, without evaluation
    loss: float


@dataclass(frozen=True)
class Change:
    """A change of the learning rate by the run's owner."""

    step: int  # steps made before; the next step has the new rate
    learning_rate: float  # with the one-cycle schedule, its peak


@dataclass(frozen=True)
class Pause:
    """The run's owner has begun or ended a pause."""

    is_on: bool
    left: float  # seconds for which the run may still pause


@dataclass(frozen=True)
class Crossing:
    """A line's copies between host and device, and the host's waits there."""

    file: str  # from the project's folder: "core/loops.py"
    line: int
    code: str  # the text of the line
    to_device: int  # bytes
    to_host: int  # bytes
    waits: int  # how often the host waited for the device


@dataclass(frozen=True)
class Traffic:
    """The copies and waits between host and device, in the newest epoch so far."""

    steps: int
    crossings: tuple[Crossing, ...]  # in the order of files and lines

    def per_step(self, name: str) -> float:
        """The sum of Crossing's field `name` over all lines, for one step."""
        return sum(getattr(line, name) for line in self.crossings) / self.steps


@dataclass(frozen=True)
class StepProgress:
    step: int  # steps made so far in the whole run
    losses: tuple[LossPoint, ...]  # new since the last report, for the chart
    samples_per_second: float  # in this epoch, evaluation not counted
    seconds: float  # since the run began
    traffic: Traffic | None = None  # only on the simulated accelerator


@stored("epoch")
@dataclass(frozen=True)
class Epoch:
    """An epoch's results: accuracies for images, or R² and RMSE for regression."""

    epoch: int  # 1, 2, ...
    step: int  # steps made so far
    loss: float  # mean over this epoch's samples, while training on them
    train_loss: float  # at the epoch's end, on up to 10,000 training samples
    test_loss: float
    seconds: float  # training time, evaluation not counted
    samples_per_second: float
    train_accuracy: float | None = None
    test_accuracy: float | None = None
    train_r2: float | None = None
    test_r2: float | None = None
    train_rmse: float | None = None
    test_rmse: float | None = None
    wall: tuple[int, ...] = ()  # predicted classes of the first WALL test images
    percent: bytes = b""  # uint8 (WALL, 10): how likely each class is, in percent
    # Of the machine, while the epoch trained: see core.measure.processors
    own_processors: float | None = None
    others_share: float | None = None


@dataclass(frozen=True)
class Progress:
    """All reports of a run so far, added up."""

    started: Started | None = None
    losses: tuple[LossPoint, ...] = ()
    history: tuple[Epoch, ...] = ()
    latest: StepProgress | None = None
    fit: Fit | None = None  # the newest; only for the task regression
    changes: tuple[Change, ...] = ()  # changes of the learning rate by hand
    pause: Pause | None = None  # the newest; None if the run has never paused

    @property
    def share(self) -> float:
        """How much of the run is done, from 0 to 1."""
        if self.started is None or self.latest is None:
            return 0.0
        return self.latest.step / self.started.steps

    @property
    def seconds_left(self) -> float | None:
        """Seconds to the end; None at first, while the device's set-up dominates."""
        if self.latest is None or self.share < FORETOLD_SHARE:
            return None
        return self.latest.seconds * (1 - self.share) / self.share

    def after(self, event: object) -> Self:
        """A Progress with this event, or `self` for an event that runs don't report."""
        match event:
            case StepProgress():
                return replace(self, losses=self.losses + event.losses, latest=event)
            case Epoch():
                return replace(self, history=(*self.history, event))
            case Started():
                return replace(self, started=event)
            case Fit():
                return replace(self, fit=event)
            case Change():
                return replace(self, changes=(*self.changes, event))
            case Pause():
                return replace(self, pause=event)
        return self


NO_PROGRESS = Progress()


def training_speed(history: Sequence[Epoch]) -> float | None:
    """Samples per second over these epochs; None without epochs."""
    seconds = [epoch.seconds for epoch in history]
    rates = [epoch.samples_per_second for epoch in history]
    return fmean(rates, seconds) if sum(seconds) else None


@stored("run")
@dataclass(frozen=True)
class RunResult:
    config: RunConfig
    environment: Environment
    parameters: int
    history: tuple[Epoch, ...]
    losses: tuple[LossPoint, ...]
    test_correct: int | None  # None for a task without classes
    test_total: int
    seconds: float  # from the first step to the last evaluation
    checkpoint: bytes = field(repr=False)  # the state_dict, written by torch.save
    fit: Fit | None = None  # only for the task regression
    traffic: Traffic | None = None  # only on the simulated accelerator
    changes: tuple[Change, ...] = ()  # changes of the learning rate by hand

    @property
    def timed_seconds(self) -> float | None:
        """The run's seconds; None on the simulated accelerator, which isn't timed."""
        return None if self.environment.is_simulated else self.seconds

    @property
    def test_accuracy(self) -> float | None:
        correct = self.test_correct
        return None if correct is None else correct / self.test_total

    @property
    def r2(self) -> float | None:
        """R² on the test set, or None for a task with classes."""
        return self.history[-1].test_r2

    @property
    def rmse(self) -> float | None:
        return self.history[-1].test_rmse

    def to_json(self) -> dict[str, Any]:
        """The settings and the metrics, ready for json.dumps."""
        figures = {
            "config": asdict(self.config),
            "device": self.environment.device,
            "environment": asdict(self.environment),
            "parameters": self.parameters,
            "changes": [asdict(change) for change in self.changes],
            "history": [
                _without_none(asdict(replace(epoch, wall=(), percent=b"")))
                for epoch in self.history
            ],
            "test_total": self.test_total,
            "test_correct": self.test_correct,
            "test_accuracy": self.test_accuracy,
            "r2": self.r2,
            "rmse": self.rmse,
            "learned_noise": self.fit and self.fit.noise,
            "seconds": self.seconds,
        }
        figures = _without_none(figures)
        return without_times(figures) if self.environment.is_simulated else figures


def without_times(data: Any) -> Any:
    """A run's plain data without times, for the simulated accelerator."""
    times = ("seconds", "samples_per_second", "own_processors", "others_share")
    if isinstance(data, dict):
        return {k: None if k in times else without_times(v) for k, v in data.items()}
    return list(map(without_times, data)) if isinstance(data, list) else data


def _without_none(figures: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in figures.items()
        if value not in (None, (), [], b"")
    }
