"""A label or an index that is out of range, which a GPU reports late."""

import re
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn

from to_device.dryrun.origins import Origin, Origins
from to_device.dryrun.script import Line
from to_device.sim.memory import to_host

OUT_OF_RANGE = re.compile(
    r"^Target (-?\d+) is out of bounds|^index out of range in self"
)
LATER = "a GPU reports a device-side assert, perhaps at a later line"


def line_of_range(
    message: str,
    tensors: Sequence[Tensor],
    frames: Sequence[tuple[Line, FrameType]],
    origins: Origins,
) -> tuple[Line, str] | None:
    """The layer with too few outputs or rows, or else what made the label or index.

    `tensors` are what the failed call was given. None for another error.
    """
    match = OUT_OF_RANGE.match(message)
    whole = [tensor for tensor in tensors if not tensor.is_floating_point()]
    parts = [tensor for tensor in tensors if tensor.is_floating_point()]
    if not (match and whole and parts and parts[0].dim()):
        return None
    if match[1]:
        value, size = int(match[1]), parts[0].shape[1 if parts[0].dim() > 1 else 0]
        layer, has = layer_of(size, frames), f"{size} outputs, but a label"
    else:
        with torch._C.DisableTorchFunction(), torch.no_grad():
            value = int(to_host(whole[0]).max())
        layer, has = parts[0], f"{parts[0].shape[0]} rows, but an index"
    line = line_of_layer(origins.of(layer)) if value >= 0 else None
    if line:
        return line, f"this layer has {has} is {value}; {LATER}"
    made = origins.of(whole[0])
    return (made.line, f"{value} is out of range; {LATER}") if made else None


def layer_of(size: int, frames: Sequence[tuple[Line, FrameType]]) -> Tensor | None:
    """The weight of the last layer with so many outputs in the frames' models."""
    for _, frame in reversed(frames):
        found = [
            weight
            for model in models(frame)
            for layer in model.modules()
            if size in (layer_size(layer, "features"), layer_size(layer, "channels"))
            and isinstance(weight := getattr(layer, "weight", None), Tensor)
        ]
        if found:
            return found[-1]
    return None


def layer_size(layer: nn.Module, kind: str) -> Any:
    return vars(layer).get(f"out_{kind}")


def models(frame: FrameType) -> Iterator[nn.Module]:
    """The modules in a function's variables, and in its object's attributes."""
    held = {**frame.f_globals, **frame.f_locals}
    this = vars(held["self"]) if hasattr(held.get("self"), "__dict__") else {}
    for value in (*held.values(), *this.values()):
        if isinstance(value, nn.Module):
            yield value


def line_of_layer(weight: Origin | None) -> Line | None:
    """The line that made the layer, in the `__init__` of the model that has it."""
    if weight is None:
        return None
    for line, module in weight.makers:
        if all(
            weight.tensor() is not own for own in vars(module())["_parameters"].values()
        ):
            return line
    return weight.line
