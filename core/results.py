"""What work tells about itself: plain data that travels between processes.

Nothing here imports torch, so that the web server can read all of it.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import fmean
from typing import Annotated, Any, ClassVar, NamedTuple

from core.config import RunConfig
from core.measure.environment import Environment

Signed = Annotated[float, "may be below 0"]  # as readings, core.measure.records, can't
DRAWN_STEPS = 600  # losses of a run that are kept; a screen has no more points
FIRST_STEPS = 100  # kept as well, each of them: this is where the loss falls
WALL = 50  # test images whose predicted classes come with each epoch, for a picture


@dataclass(frozen=True)
class Started:
    """A run begins: where the run goes on, and how long it is."""

    lasts: ClassVar[bool] = True  # read after the run's end too: the result has less
    environment: Environment
    parameters: int
    steps: int  # in the whole run
    train_images: int  # or points
    test_images: int


@dataclass(frozen=True)
class Fit:
    """What a model of the task regression answers now."""

    passes: ClassVar[bool] = True  # of interest until the next one
    step: int  # made so far
    outputs: tuple[Signed, ...]  # at core.data.curve.POSITIONS
    noise: float | None  # scale that the criterion has learned; None: it learns none


class LossPoint(NamedTuple):
    """The loss of one step."""

    step: int  # from 1
    seconds: float  # of training up to it, evaluation not counted
    loss: float


@dataclass(frozen=True)
class StepProgress:
    """Some steps were made."""

    passes: ClassVar[bool] = True  # of interest until the next one, but for its losses
    step: int  # made so far, in the whole run
    losses: tuple[LossPoint, ...]  # of the steps to be drawn
    samples_per_second: float  # in this epoch, evaluation not counted
    seconds: float  # since the run began


@dataclass(frozen=True)
class Epoch:
    """An epoch ended and the model was evaluated.

    Images have an accuracy, the task regression has R² and RMSE.
    """

    epoch: int  # 1, 2, ...
    step: int  # made so far
    loss: float  # mean over the samples of this epoch, as they were trained on
    train_loss: float  # of the model as it is now, on the first training images
    test_loss: float
    seconds: float  # of training, evaluation not counted
    samples_per_second: float
    train_accuracy: float | None = None
    test_accuracy: float | None = None
    train_r2: float | None = None
    test_r2: float | None = None
    train_rmse: float | None = None
    test_rmse: float | None = None
    wall: tuple[int, ...] = ()  # predicted classes of the first WALL test images


def training_speed(history: Sequence[Epoch]) -> float | None:
    """Samples a second over all these epochs; None where there is none yet."""
    seconds = [each.seconds for each in history]
    rates = [each.samples_per_second for each in history]
    return fmean(rates, seconds) if sum(seconds) else None


@dataclass(frozen=True)
class RunResult:
    """A finished run."""

    config: RunConfig
    environment: Environment
    parameters: int
    history: tuple[Epoch, ...]
    losses: tuple[LossPoint, ...]
    test_correct: int | None  # None: there are no classes
    test_total: int
    seconds: float  # from the first step to the last evaluation
    # The state_dict, as torch.save writes it; the server has it in its database.
    checkpoint: bytes = field(repr=False)
    fit: Fit | None = None  # of the task regression

    @property
    def test_accuracy(self) -> float | None:
        correct = self.test_correct
        return None if correct is None else correct / self.test_total

    @property
    def r2(self) -> float | None:
        """Of the test set, where there are no classes."""
        return self.history[-1].test_r2

    @property
    def rmse(self) -> float | None:
        return self.history[-1].test_rmse

    def to_json(self) -> dict[str, Any]:
        """All but the checkpoint, the steps and single answers, ready for json.dumps.

        A figure that the task does not have is left out.
        """
        return _known(
            {
                "config": asdict(self.config),
                "device": self.environment.device,
                "environment": asdict(self.environment),
                "parameters": self.parameters,
                "history": [
                    _known(asdict(replace(epoch, wall=()))) for epoch in self.history
                ],
                "test_total": self.test_total,
                "test_correct": self.test_correct,
                "test_accuracy": self.test_accuracy,
                "r2": self.r2,
                "rmse": self.rmse,
                "learned_noise": self.fit and self.fit.noise,
                "seconds": self.seconds,
            }
        )


def _known(figures: dict[str, Any]) -> dict[str, Any]:
    """Those that are there."""
    return {n: value for n, value in figures.items() if value not in (None, ())}
