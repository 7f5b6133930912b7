"""The results of evaluating a model: plain data, without torch."""

from dataclasses import dataclass

from core.measure.environment import Environment
from core.registry import stored


@dataclass(frozen=True)
class ClassScore:
    name: str
    precision: float  # the correct share of the predictions of this class
    recall: float  # the recognized share of the images of this class
    f1: float  # harmonic mean of precision and recall
    images: int  # how many images of this class the test set has


@stored("evaluation")
@dataclass(frozen=True)
class Evaluation:
    environment: Environment
    classes: tuple[ClassScore, ...]
    confusion: tuple[tuple[int, ...], ...]  # [true class][predicted class]
    correct: int
    total: int
    interval: tuple[float, float]  # 95% confidence interval of the accuracy
    targets: tuple[int, ...]  # true class of each test image, in file order
    predictions: tuple[int, ...]  # predicted class of each test image
    confidences: tuple[float, ...]  # softmax probability of each predicted class

    @property
    def accuracy(self) -> float:
        return self.correct / self.total


@stored("mode")
@dataclass(frozen=True)
class ModeCost:
    mode: str  # "gradients", "no_grad", "inference_mode"
    seconds: tuple[float, ...]  # one for each repeat
    peak_bytes: int | None  # None if it can't be measured on the device
    images: int
    environment: Environment
    model: str  # "ann" or "cnn"


@stored("precision")
@dataclass(frozen=True)
class PrecisionCost:
    precision: str  # "float32", "TF32", "bfloat16"
    seconds: tuple[float, ...]  # one for each repeat
    changed: int  # number of predictions that differ from those in float32
    correct: int
    images: int
    environment: Environment
