"""When a model was moved, as the origins of tensors tell it."""

import ast
import inspect
import linecache
import re

from torch import nn

from to_device.dryrun.origins import Call, Origin
from to_device.dryrun.script import MOVES, Line
from to_device.dryrun.statements import statement_at

TO_CPU = re.compile(r"\.cpu\(|\.to\((device=)?['\"]cpu")  # in code from ast.unparse
MEETS_DEVICE = (
    "this line copies a tensor to the CPU, but the tensors that it meets stay on the "
    "GPU"
)


def moved_back(origin: Origin | None) -> Line | None:
    """The line that put the tensor, or one that it was made from, back on the CPU."""
    for ancestor in origin.chain() if origin else ():
        tensor = ancestor.tensor()
        if ancestor.moved_back and tensor is not None and tensor.is_cpu:
            return ancestor.moved_back
    return None


def before_the_move(start: Origin | None, origin: Origin) -> tuple[Line, str] | None:
    """The line to change if a tensor was computed before the model's move, and why."""
    early = early_line(start, origin)
    if early and (copied := copied_line(start)):
        return copied, MEETS_DEVICE
    why = "this line used a parameter before the model was moved: move the model first"
    return (early, why) if early else None


def early_line(start: Origin | None, origin: Origin) -> Line | None:
    """The line that computed with a model's parameter before the model was moved."""
    for ancestor in start.chain() if start else ():
        if any(map(is_moved, ancestor.parameters)):
            calls = filter(comes_before_a_move, ancestor.calls)
            if early := next(calls, None):
                return early.line
    if is_moved(origin.source) or "deepcopy" in origin.line.code:
        return next(filter(comes_before_a_move, origin.calls), origin.calls[0]).line
    return None


def copied_line(start: Origin | None) -> Line | None:
    """The line that says to copy to the CPU what a tensor was computed from, if any.

    Before the model's move, such a copy leaves the tensor as it was.
    """
    for ancestor in start.chain() if start else ():
        statement, _ = statement_at(ancestor.line)
        if statement and TO_CPU.search(ast.unparse(statement)):
            return ancestor.line
    return None


def is_moved(origin: Origin | None) -> bool:
    """Whether this tensor is a parameter that has been moved to the device."""
    tensor = origin and origin.tensor()
    return isinstance(tensor, nn.Parameter) and not tensor.is_cpu


def comes_before_a_move(call: Call) -> bool:
    """Whether the function moves something to a device after this line."""
    lines, first = linecache.getlines(call.line.file), 1
    if call.code.co_name != "<module>":
        lines, first = inspect.getsourcelines(call.code)
    return any(map(MOVES.search, lines[call.line.number + 1 - first :]))
