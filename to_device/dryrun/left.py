"""The line that left a tensor on the CPU, where others move theirs to the device."""

import ast
import inspect
import re
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from types import CodeType, FrameType
from typing import Any

from torch.utils._pytree import tree_leaves

from to_device.dryrun.model_moves import is_moved, moved_back
from to_device.dryrun.origins import Call, Origin, Origins
from to_device.dryrun.script import MOVES, Line
from to_device.dryrun.statements import (
    statement_at,
    tree,
)

Frames = Sequence[tuple[Line, FrameType]]  # the outermost function first
# The device as in `.to(device)` or `.to(self.device)`: what it is an attribute of, and
# its name
TO_NAME = re.compile(r"\.to\( *(?:device *= *)?((?:\w+\.)*)(\w+) *[,)]")
DOTTED = re.compile(r"[\w.]+")


def where_it_was_left(
    start: Origin | None, frames: Frames, origins: Origins
) -> tuple[Line, str] | None:
    """The line that put the tensor back on the CPU, kept it there, or passed it on."""
    if back := moved_back(start):
        return (
            back,
            "this line puts tensors back on the CPU, and later lines use them on "
            "the device",
        )
    for ancestor in start.chain() if start else ():
        if ancestor.copies or is_moved(ancestor):
            break
        if ancestor.loader:
            return (
                ancestor.loader,
                "other loaders' batches come on the device, and this loader's don't: "
                "look at its collate_fn and its data set",
            )
        if ancestor.kept and not origins.has_moved(ancestor.kept):
            return line_of_cpu(ancestor.kept, frames)
        if at := ancestor.passed or passing_line(ancestor.tensor(), frames, origins):
            return (
                at,
                "this function moves tensors, but this line passes on one "
                "that is still on the CPU",
            )
    return None


def passing_line(tensor: Any, frames: Frames, origins: Origins) -> Line | None:
    """The line of a wrapper that passes on a tensor in its *args or **kwargs.

    A wrapper is a function that moves tensors, or calls another one that does, and is
    still running.
    """
    for line, frame in frames if tensor is not None else ():
        info = inspect.getargvalues(frame)
        names = filter(None, (info.varargs, info.keywords))
        packed = tree_leaves([info.locals[name] for name in names])
        if not any(tensor is part for part in packed):
            continue
        named = map(frame.f_globals.get, frame.f_code.co_names)
        codes = filter(inspect.iscode, [getattr(f, "__code__", None) for f in named])
        for code in [frame.f_code, *codes]:
            is_own = origins.script.owns(code.co_filename)
            if is_own and MOVES.search(inspect.getsource(code)):
                return line
    return None


def line_of_cpu(kept: list[Call], frames: Frames) -> tuple[Line, str]:
    """The line that chose the CPU for a move that left a tensor there, and why.

    If the device comes from a parameter, it is the call that passed the CPU, or that
    left out a parameter whose default is the CPU. Otherwise, it is the move's line.
    """
    move = kept[0].line
    match = TO_NAME.search(move.code)
    if match and not match[1] and (found := choosing_call(kept, match[2])):
        return found
    name = match[2] if match else ""
    for line, frame in frames:
        if call := call_without(name, line, frame):
            return call, f"this call doesn't pass {name}, whose default is the CPU"
    return move, "this line moves the tensor to the CPU"


def choosing_call(calls: list[Call], name: str) -> tuple[Line, str] | None:
    """The call that chose the value of the innermost function's parameter, and why.

    A function that only hands on a parameter of its own doesn't choose.
    """
    found: tuple[Line, str] | None = None
    for inner, outer in pairwise(calls):
        code = inner.code
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        call = call_of(code, outer.line) if name in names else None
        if call is None:
            break
        value = argument(call, code, name)
        if value is None:
            why = f"this call doesn't pass {name}, whose default is the CPU"
            return Line(outer.line.file, call.lineno), why
        found = outer.line, f"this call passes the CPU as {name}"
        if not isinstance(value, ast.Name):
            break
        name = value.id
    return found


def call_of(code: CodeType, line: Line) -> ast.Call | None:
    """The call of a function in the statement at a line, if its text shows it."""
    statement, _ = statement_at(line)
    for node in ast.walk(statement) if statement else ():
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func).split(".")[-1]
            parts = [*node.args, *(k.arg for k in node.keywords)]
            is_plain = not any(p is None or isinstance(p, ast.Starred) for p in parts)
            if name == code.co_name and is_plain:
                return node
    return None


def argument(call: ast.Call, code: CodeType, name: str) -> ast.expr | None:
    """What a call passes as a function's parameter; None if it leaves it out."""
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    place = code.co_varnames.index(name)
    if code.co_varnames[0] in ("self", "cls") and isinstance(call.func, ast.Attribute):
        place -= 1
    is_given = place < min(len(call.args), code.co_argcount)
    return call.args[place] if is_given else named.get(name)


def call_without(name: str, line: Line, frame: FrameType) -> Line | None:
    """A call in the file that leaves out a parameter whose default is the CPU."""
    nodes = ast.walk(tree(line.file))
    for call in (node for node in nodes if isinstance(node, ast.Call)):
        function = ast.unparse(call.func)
        if not DOTTED.fullmatch(function):
            continue  # to evaluate it could run the script's code
        # Fails for another function's variable, or if there is no signature.
        with suppress(Exception):
            value = eval(function, frame.f_globals, frame.f_locals)
            parameters = inspect.signature(value).parameters
            place = list(parameters).index(name)
            is_passed = any(k.arg in (name, None) for k in call.keywords)
            is_cpu = "cpu" in str(parameters[name].default)
            if is_cpu and not is_passed and len(call.args) <= place:
                return Line(line.file, call.lineno)
    return None
