"""The results of opening, loading and resuming: plain data, without torch."""

from dataclasses import dataclass, field
from typing import ClassVar

from core.measure.environment import Environment

RESUME_IMAGES = 4000  # few training images, so that it takes seconds on a laptop


@dataclass(frozen=True)
class TensorInfo:
    name: str
    shape: tuple[int, ...]
    dtype: str  # "float32"
    bytes: int
    device: str  # it was saved from; "not recorded" in a format that does not say


@dataclass(frozen=True)
class Opened:
    """An uploaded checkpoint, compared with one of our architectures."""

    format: str
    tensors: tuple[TensorInfo, ...]
    notes: tuple[str, ...]  # one sentence for each thing unwrapped, cast or left out
    model: str  # the architecture
    missing: tuple[str, ...]  # names that the architecture has and the file lacks
    unexpected: tuple[str, ...]  # the reverse
    misshapen: tuple[tuple[str, str, str], ...]  # name, in the file, in the model
    renamed: tuple[tuple[str, str], ...]  # name in the file, name in the model
    checkpoint: bytes | None = field(repr=False)  # with our names, where it fits


@dataclass(frozen=True)
class RoundTrip:
    """A model's logits before it was saved, compared with those after loading."""

    saved_on: str
    loaded_on: str
    dtype: str  # number format in the file
    bytes: int
    values: int  # logits that were compared
    greatest_difference: float  # between a logit before and after
    differing_values: int
    differing_predictions: int
    images: int
    environment: Environment  # the device that it was loaded on


@dataclass(frozen=True)
class PartLosses:
    """Losses of one of the three trainings that are compared."""

    lasts: ClassVar[bool] = (
        True  # Readers want the losses later, and the result has none.
    )
    part: str  # "through", "resumed" or "weights"
    losses: tuple[tuple[int, float], ...]  # step from 1, loss


@dataclass(frozen=True)
class Resumed:
    """Training that was interrupted and resumed, beside training without a break."""

    bytes: int  # size of the checkpoint in the middle
    contents: tuple[str, ...]  # its keys
    steps: int  # in the whole training
    epochs: int
    at_step: int  # the step at which the run was interrupted
    greatest_loss_difference: float  # through against resumed, over all steps
    differing_weights: int  # numbers that differ between the two final state_dicts
    weights: int
    weights_only_difference: float  # greatest, where only the weights were loaded
    environment: Environment
