"""A label or an index that is out of range, which a GPU reports late."""

import ast
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn

from to_device.dryrun.origins import Origin, Origins
from to_device.dryrun.script import Line
from to_device.dryrun.statements import statement_at, tree
from to_device.sim.memory import to_host

OUT_OF_RANGE = re.compile(
    r"^Target (-?\d+) is out of bounds|^index out of range in self"
)
# Each layer with a size, and which of its arguments that is
LAYERS = {"Embedding": 0, "Linear": 1, "Conv1d": 1, "Conv2d": 1, "Conv3d": 1}
SIZES = ("num_embeddings", "out_features", "out_channels")
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
    """The line that chose the size of the layer that has this weight.

    It made the layer, or called the function that only hands on the size it was given.
    """
    if weight is None:
        return None
    inner = [maker.line for maker in weight.makers]
    lines = [*inner, *(call.line for call in weight.calls)]
    owners = [maker.module() for maker in weight.makers]
    own = [vars(module)["_parameters"].values() for module in owners]
    start = next(
        (k for k, o in enumerate(own) if all(weight.tensor() is not p for p in o)),
        len(inner),
    )
    if start:  # the layer's class is the script's own
        return lines[start]
    called: Mapping[str, int] = LAYERS
    names: Collection[str] = SIZES
    for line in lines[:-1]:
        value, function = argument(line, called, names), function_at(line)
        parameters = parameters_of(function) if function else []
        name = value.id if isinstance(value, ast.Name) else ""
        if function is None or not name or name not in parameters:
            return line
        place, names = parameters.index(name), (name,)
        called = dict.fromkeys((function.name, *classes_with(function, line)), place)
    return lines[-1]


def argument(
    line: Line, called: Mapping[str, int], names: Collection[str]
) -> ast.expr | None:
    """What the only such call at a line passes as a parameter, by a name or its place.

    `called` has the places by the functions' names.
    """
    statement, _ = statement_at(line)
    given: list[ast.expr] = []
    for node in ast.walk(statement) if statement else ():
        if isinstance(node, ast.Call) and node.lineno <= line.number:
            name = ast.unparse(node.func).split(".")[-1]
            is_here = name in called and line.number <= (node.end_lineno or 0)
            place = called[name] if is_here else len(node.args)
            given += node.args[place : place + 1]
            given += [k.value for k in node.keywords if is_here and k.arg in names]
    is_plain = len(given) == 1 and not isinstance(given[0], ast.Starred)
    return given[0] if is_plain else None


def function_at(line: Line) -> ast.FunctionDef | None:
    """The innermost function around a line."""
    found = [
        node
        for node in ast.walk(tree(line.file))
        if isinstance(node, ast.FunctionDef)
        and node.lineno <= line.number <= (node.end_lineno or 0)
    ]
    return found[-1] if found else None


def parameters_of(function: ast.FunctionDef) -> list[str]:
    """A function's parameters, without `self`, to which it assigns nothing itself."""
    given = function.args
    parts = (*given.posonlyargs, *given.args, *given.kwonlyargs)
    names = [part.arg for part in parts]
    names = names[names[:1] == ["self"] :]
    goals = {
        part.id
        for part in ast.walk(function)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
    }
    return [name if name not in goals else "" for name in names]


def classes_with(function: ast.FunctionDef, line: Line) -> list[str]:
    """The class whose `__init__` this function is, if it's one."""
    return [
        node.name
        for node in ast.walk(tree(line.file))
        if isinstance(node, ast.ClassDef)
        and function.name == "__init__"
        and any(part.lineno == function.lineno for part in node.body)
    ]
