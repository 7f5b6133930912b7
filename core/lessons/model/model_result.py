"""The results of moving models and tensors: plain data, without torch."""

from dataclasses import dataclass
from typing import Any

from core.measure.environment import Environment
from core.registry import stored

MOST_BATCHES = 100  # how many batches of a run can be inspected


@dataclass(frozen=True)
class Crossing:
    """What the simulated accelerator counted while some code ran."""

    copies: int  # number of copies between host and device
    bytes: int  # total size of these copies
    waits: int  # how often the host waited for the device


@dataclass(frozen=True)
class MovedTensor:
    name: str
    kind: str  # "parameter" or "buffer"
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    before: str  # its device before the move
    after: str  # its device after the move


@dataclass(frozen=True)
class Move:
    tensors: tuple[MovedTensor, ...]
    allocated_before: int | None  # bytes of tensors on the device; None: not counted
    allocated_after: int | None
    environment: Environment
    crossed: Crossing | None = None  # None if the device isn't simulated


@stored("model_move")
@dataclass(frozen=True)
class MoveTime:
    """How long `model.to(device)` takes."""

    seconds: tuple[float, ...]  # one for each repeat
    environment: Environment


@dataclass(frozen=True)
class OptimizerFinding:
    """What an optimizer's step does to a model that was moved."""

    target: str  # the device or the dtype that the model was moved to
    # Optimizer built "after" or "before" the move; "used": built and used before.
    when: str
    holds_the_parameters: bool  # whether the optimizer holds the moved parameters
    weights_changed: bool  # whether a step after the move changed the weights
    error: str  # the error of the step after the move; "" if there was none


@dataclass(frozen=True)
class Forgotten:
    """How a training step ends if some moves to the device are forgotten."""

    error: str = ""  # the error of the step; "" if there was none
    line: int | None = None  # the line of model_to.step with the error, from 1


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
class Group:
    """All tensors of one kind on one device, such as the gradients."""

    name: str
    device: str
    bytes: int


@dataclass(frozen=True)
class BatchStage:
    groups: tuple[Group, ...]  # what the memories hold after the step
    tensors: tuple[TensorSummary, ...]  # created by the step
    gradients: dict[str, float | None]  # norm for each parameter; None: no gradient
    moved: dict[str, float]  # norm of each parameter's change since before the batch
    crossed: Crossing | None = None  # None if the device isn't simulated


@dataclass(frozen=True)
class SteppedBatch:
    stages: tuple[BatchStage, ...]  # one after each step
    images: Any  # numpy uint8 (n, 28, 28), the first images of the batch
    labels: tuple[int, ...]  # one for each of these images
    logits: Any  # numpy float32 (n, 10)
    probabilities: Any  # numpy float32 (n, 10)
    classes: tuple[str, ...]
    environment: Environment


@stored("transfer")
@dataclass(frozen=True)
class Transfer:
    """The time of one kind of copy at one size."""

    direction: str  # "host to device", "device to host", "host to host"
    memory: str  # the host's memory: "pageable", "pinned", ...
    bytes: int
    seconds: tuple[float, ...]  # one for each repeat


@stored("transfers")
@dataclass(frozen=True)
class Transfers:
    measured: tuple[Transfer, ...]
    environment: Environment | None = None  # None while copies are still being timed
