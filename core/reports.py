"""What work tells about itself: plain data that travels between processes.

Nothing here imports torch, so that the web server can read all of it.
"""

from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from core.config import RunConfig

DRAWN_STEPS = 600  # losses of a run that are kept; a screen has no more points
RESUME_IMAGES = 4000  # of the training set: resuming is compared in seconds on a laptop


@dataclass(frozen=True)
class PickedUp:
    """A worker has begun with a job; the first event of every job."""

    worker: str


@dataclass(frozen=True)
class Download:
    """How far a download has come."""

    done_bytes: int
    total_bytes: int


@dataclass(frozen=True)
class Started:
    """A run begins: where the run goes on, and how long it is."""

    environment: dict[str, Any]  # see core.device.environment
    parameters: int
    steps: int  # in the whole run
    train_images: int  # or points
    test_images: int


@dataclass(frozen=True)
class Fit:
    """What a model of the task regression answers now."""

    step: int  # made so far
    outputs: tuple[float, ...]  # at core.curve.POSITIONS
    noise: float | None  # scale that the criterion has learnt; None: it learns none


class Loss(NamedTuple):
    """The loss of one step."""

    step: int  # from 1
    seconds: float  # of training up to it, evaluation not counted
    loss: float


@dataclass(frozen=True)
class Steps:
    """Some steps were made."""

    step: int  # made so far, in the whole run
    losses: tuple[Loss, ...]  # of the steps to be drawn
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


@dataclass(frozen=True)
class RunResult:
    """A finished run."""

    config: RunConfig
    environment: dict[str, Any]
    parameters: int
    history: tuple[Epoch, ...]
    losses: tuple[Loss, ...]
    test_correct: int | None  # None: there are no classes
    test_total: int
    seconds: float  # from the first step to the last evaluation
    checkpoint: bytes = field(repr=False)  # the state_dict, as torch.save writes it
    fit: Fit | None = None  # of the task regression

    @property
    def test_accuracy(self) -> float | None:
        return (
            None if self.test_correct is None else self.test_correct / self.test_total
        )

    @property
    def r2(self) -> float | None:
        """Of the test set, where there are no classes."""
        return self.history[-1].test_r2

    @property
    def rmse(self) -> float | None:
        return self.history[-1].test_rmse

    def to_json(self) -> dict[str, Any]:
        """All but the checkpoint and the single steps, ready for json.dumps.

        A figure that the task does not have is left out.
        """
        figures = {
            "test_correct": self.test_correct,
            "test_accuracy": self.test_accuracy,
            "r2": self.r2,
            "rmse": self.rmse,
            "learned_noise": self.fit and self.fit.noise,
        }
        return {
            "config": asdict(self.config),
            "device": self.environment["device"],
            "environment": self.environment,
            "parameters": self.parameters,
            "history": [_known(asdict(epoch)) for epoch in self.history],
            "test_total": self.test_total,
            **_known(figures),
            "seconds": self.seconds,
        }


def _known(figures: dict[str, Any]) -> dict[str, Any]:
    """Those that are not None."""
    return {name: value for name, value in figures.items() if value is not None}


@dataclass(frozen=True)
class ClassScore:
    """How well one class is recognised."""

    name: str
    precision: float  # of the images called so, the share that are so
    recall: float  # of the images that are so, the share called so
    f1: float  # harmonic mean of the two
    images: int  # of this class in the test set


@dataclass(frozen=True)
class Evaluation:
    """A model's answers to the whole test set."""

    environment: dict[str, Any]
    classes: tuple[ClassScore, ...]
    confusion: tuple[tuple[int, ...], ...]  # [true class][predicted class]
    correct: int
    total: int
    interval: tuple[float, float]  # of the accuracy, 95 %
    targets: tuple[int, ...]  # true class of each test image, in file order
    predictions: tuple[int, ...]  # predicted class of each
    confidences: tuple[float, ...]  # softmax probability of that class

    @property
    def accuracy(self) -> float:
        return self.correct / self.total


@dataclass(frozen=True)
class ModeCost:
    """What evaluating costs in one autograd mode."""

    mode: str  # "gradients", "no_grad", "inference_mode"
    seconds: tuple[float, ...]  # one for each repeat
    peak_bytes: int | None  # None where the device does not tell
    images: int
    environment: dict[str, Any]


@dataclass(frozen=True)
class MovedTensor:
    """A parameter or buffer of a model that was moved."""

    name: str
    kind: str  # "parameter" or "buffer"
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    before: str  # device
    after: str


@dataclass(frozen=True)
class Move:
    """A model that was moved to a device."""

    tensors: tuple[MovedTensor, ...]
    allocated_before: int | None  # bytes of tensors on the device; None: not counted
    allocated_after: int | None
    environment: dict[str, Any]


@dataclass(frozen=True)
class MoveTime:
    """How long `model.to(device)` takes."""

    seconds: tuple[float, ...]  # one for each repeat
    environment: dict[str, Any]


@dataclass(frozen=True)
class OptimizerFinding:
    """What an optimizer does for a model that was moved."""

    target: str  # device or dtype
    when: str  # the optimizer was built "after" the move, "before", or "used" before
    holds_the_parameters: bool  # those that the model has after the move
    weights_changed: bool | None  # by a step after the move; None on meta
    error: str  # of that step; empty if there was none


@dataclass(frozen=True)
class Look:
    """A tensor as one row of a table."""

    name: str
    device: str
    shape: tuple[int, ...]
    dtype: str
    least: float
    mean: float
    most: float


@dataclass(frozen=True)
class Stage:
    """What there is to see after one step of the loop."""

    tensors: tuple[Look, ...]
    gradients: dict[str, float | None]  # norm for each parameter; None: no gradient
    moved: dict[str, float]  # distance of each parameter from before the batch


@dataclass(frozen=True)
class Batch:
    """One batch, stopped after every step."""

    stages: tuple[Stage, ...]
    images: Any  # numpy uint8 (n, 28, 28), the first of the batch
    labels: tuple[int, ...]  # of those
    logits: Any  # numpy float32 (n, 10)
    probabilities: Any  # numpy float32 (n, 10)
    classes: tuple[str, ...]
    environment: dict[str, Any]


@dataclass(frozen=True)
class Transfer:
    """One kind of copy at one size."""

    direction: str  # "host to device", "device to host", "host to host"
    memory: str  # on the host's side
    bytes: int
    seconds: tuple[float, ...]  # one for each repeat


@dataclass(frozen=True)
class Transfers:
    """What copies cost."""

    measured: tuple[Transfer, ...]
    environment: dict[str, Any]


@dataclass(frozen=True)
class TensorInfo:
    """One entry of a state_dict."""

    name: str
    shape: tuple[int, ...]
    dtype: str  # "float32"
    bytes: int
    device: str  # it was saved from; "not recorded" in a format that does not say


@dataclass(frozen=True)
class Opened:
    """A checkpoint that somebody uploaded, held against one of our architectures."""

    format: str
    tensors: tuple[TensorInfo, ...]
    notes: tuple[str, ...]  # what was unwrapped, cast, left out: a sentence each
    model: str  # the architecture
    missing: tuple[str, ...]  # names that the architecture has and the file lacks
    unexpected: tuple[str, ...]  # the reverse
    misshapen: tuple[tuple[str, str, str], ...]  # name, in the file, in the model
    renamed: tuple[tuple[str, str], ...]  # name in the file, name in the model
    checkpoint: bytes | None = field(repr=False)  # with our names, where it fits


@dataclass(frozen=True)
class RoundTrip:
    """A model's answers before it was saved and after it was loaded again."""

    saved_on: str
    loaded_on: str
    dtype: str  # of the numbers in the file
    bytes: int
    values: int  # logits that were compared
    greatest_difference: float  # of two logits
    differing_values: int
    differing_predictions: int
    images: int
    environment: dict[str, Any]  # of the device that it was loaded on


@dataclass(frozen=True)
class PartLosses:
    """Losses of one part of a comparison between training through and resuming."""

    part: str  # "through", "resumed" or "weights"
    losses: tuple[tuple[int, float], ...]  # step from 1, loss


@dataclass(frozen=True)
class Resumed:
    """Training that was interrupted, beside training that was not."""

    bytes: int  # of the checkpoint in the middle
    contents: tuple[str, ...]  # its keys
    steps: int  # of the whole training
    epochs: int
    at_step: int  # where it was interrupted
    greatest_loss_difference: float  # through against resumed, over all steps
    differing_weights: int  # of the numbers in the two state_dicts at the end
    weights: int
    weights_only_difference: float  # greatest, where only the weights were loaded
    environment: dict[str, Any]


@dataclass(frozen=True)
class Demonstration:
    """What happened when something was done wrong on purpose, and done right."""

    message: str  # PyTorch's own
    outcome: str  # what followed, one sentence
    listing: str = ""  # what there is to read
    right: str = ""  # what the right way brought, one sentence
