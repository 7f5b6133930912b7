"""The results of opening, loading and resuming checkpoints: plain data."""

from dataclasses import dataclass, field
from typing import ClassVar

from core.measure.environment import Environment
from core.registry import stored

RESUME_IMAGES = 4000  # per epoch, so few that training takes seconds on a laptop


@dataclass(frozen=True)
class TensorInfo:
    name: str
    shape: tuple[int, ...]
    dtype: str  # "float32"
    bytes: int
    device: str  # the device that the tensor was saved from, or "not recorded"


@dataclass(frozen=True)
class Opened:
    """An uploaded checkpoint, compared with one of our architectures."""

    format: str
    tensors: tuple[TensorInfo, ...]
    notes: tuple[str, ...]  # a sentence for each entry that was changed or left out
    model: str  # the architecture: "ann" or "cnn"
    missing: tuple[str, ...]  # names that the architecture has and the file lacks
    unexpected: tuple[str, ...]  # names that the file has and the architecture lacks
    misshapen: tuple[tuple[str, str, str], ...]  # name, file's shape, model's shape
    renamed: tuple[tuple[str, str], ...]  # name in the file, name in the model
    checkpoint: bytes | None = field(repr=False)  # None if the file doesn't fit


@stored("round_trip")
@dataclass(frozen=True)
class RoundTrip:
    """A model's logits before it was saved, compared with those after loading."""

    saved_on: str
    loaded_on: str
    dtype: str  # number format in the file
    bytes: int  # size of the file
    values: int  # number of logits that were compared
    greatest_difference: float  # the most that saving and loading changed a logit
    differing_values: int
    differing_predictions: int
    images: int
    environment: Environment  # describes the device that the model was loaded on


@stored("part_losses")
@dataclass(frozen=True)
class PartLosses:
    """Losses since the last report, of one of the compared trainings."""

    # A finished job keeps these reports, since Resumed has no losses.
    lasts: ClassVar[bool] = True
    # "through" (without a break), "resumed", or "weights" (only these were loaded)
    part: str
    losses: tuple[tuple[int, float], ...]  # step from 1, loss


@stored("resume")
@dataclass(frozen=True)
class Resumed:
    """How a training that was resumed differs from a training without a break."""

    bytes: int  # size of the checkpoint that was saved halfway
    contents: tuple[str, ...]  # the checkpoint's keys
    steps: int  # number of steps of the whole training
    epochs: int
    at_step: int  # the step at which the run was interrupted
    greatest_loss_difference: float  # between "resumed" and "through", in any step
    # numbers that differ between the final state_dicts of "resumed" and "through"
    differing_weights: int
    weights: int  # numbers in a state_dict
    weights_only_difference: float  # greatest loss difference, "weights" to "through"
    environment: Environment
