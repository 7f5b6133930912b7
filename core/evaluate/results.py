"""What evaluating a model finds: plain data, without torch."""

from dataclasses import dataclass

from core.measure.environment import Environment


@dataclass(frozen=True)
class ClassScore:
    """How well one class is recognized."""

    name: str
    precision: float  # of the images called so, the share that are so
    recall: float  # of the images that are so, the share called so
    f1: float  # harmonic mean of the two
    images: int  # of this class in the test set


@dataclass(frozen=True)
class Evaluation:
    """A model's answers to the whole test set."""

    environment: Environment
    classes: tuple[ClassScore, ...]
    confusion: tuple[tuple[int, ...], ...]  # [true class][predicted class]
    correct: int
    total: int
    interval: tuple[float, float]  # of the accuracy, 95%
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
    environment: Environment
    model: str = ""  # of the config; "" in what was kept before there were two


@dataclass(frozen=True)
class PrecisionCost:
    """What the answers to the whole test set cost in one precision."""

    precision: str  # "float32", "TF32", "bfloat16"
    seconds: tuple[float, ...]  # one for each repeat
    changed: int  # answers that are others than in float32
    correct: int
    images: int
    environment: Environment
