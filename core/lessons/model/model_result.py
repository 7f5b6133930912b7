"""The results of moving models and tensors: plain data, without torch."""

from dataclasses import dataclass
from typing import Any

from core.measure.environment import Environment


@dataclass(frozen=True)
class Crossing:
    """Counts of the simulated accelerator while some code runs."""

    copies: int  # between host and device
    bytes: int
    waits: int  # times that the host waited for the device


@dataclass(frozen=True)
class MovedTensor:
    name: str
    kind: str  # "parameter" or "buffer"
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    before: str  # device that it was on
    after: str  # device that it is on now


@dataclass(frozen=True)
class Move:
    tensors: tuple[MovedTensor, ...]
    allocated_before: int | None  # bytes of tensors on the device; None: not counted
    allocated_after: int | None
    environment: Environment
    crossed: Crossing | None = None  # None where nothing counts


@dataclass(frozen=True)
class MoveTime:
    """How long `model.to(device)` takes."""

    seconds: tuple[float, ...]  # one for each repeat
    environment: Environment


@dataclass(frozen=True)
class OptimizerFinding:
    """What an optimizer does for a model that was moved."""

    target: str  # device or dtype
    when: str  # the optimizer was built "after" the move, "before", or "used" before
    holds_the_parameters: bool  # those that the model has after the move
    weights_changed: bool  # whether a step after the move changed the weights
    error: str  # raised by that step; empty if there was none


@dataclass(frozen=True)
class Forgotten:
    """How a step ends without some of its moves."""

    error: str = ""  # empty if there was none
    line: int | None = None  # line of model_to.step that raised it, from 1


@dataclass(frozen=True)
class TensorSummary:
    name: str
    device: str
    shape: tuple[int, ...]
    dtype: str
    least: float
    mean: float
    most: float


@dataclass(frozen=True)
class Held:
    """Tensors of one name in one memory, such as all gradients."""

    name: str
    device: str
    bytes: int


@dataclass(frozen=True)
class BatchStage:
    held: tuple[Held, ...]  # by model, batch, loss, gradients and optimizer
    tensors: tuple[TensorSummary, ...]
    gradients: dict[str, float | None]  # norm for each parameter; None: no gradient
    moved: dict[str, float]  # distance of each parameter from before the batch
    crossed: Crossing | None = None  # None where nothing counts


@dataclass(frozen=True)
class SteppedBatch:
    stages: tuple[BatchStage, ...]
    images: Any  # numpy uint8 (n, 28, 28), the first of the batch
    labels: tuple[int, ...]  # one for each of these images
    logits: Any  # numpy float32 (n, 10)
    probabilities: Any  # numpy float32 (n, 10)
    classes: tuple[str, ...]
    environment: Environment


@dataclass(frozen=True)
class Transfer:
    """One kind of copy at one size."""

    direction: str  # "host to device", "device to host", "host to host"
    memory: str  # on the host's side
    bytes: int
    seconds: tuple[float, ...]  # one for each repeat


@dataclass(frozen=True)
class Transfers:
    measured: tuple[Transfer, ...]
    environment: Environment | None = None  # None while they are being measured
