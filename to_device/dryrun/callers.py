"""The line of a tensor that a function, or a model, has made for its callers."""

import ast
import inspect
import linecache
import re
import sys
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from types import CodeType, FrameType

import torch
from torch import nn

from to_device.dryrun.origins import SAME, Origin, Origins
from to_device.dryrun.script import Line
from to_device.dryrun.statements import (
    functions_in,
    lines_of,
    list_of,
    moves,
    names_in,
    statement_at,
    tree,
)

Frames = Sequence[tuple[Line, FrameType]]  # the outermost function first
INNER = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")  # parts of functions
OF_DEVICE = re.compile("cuda|device|gpu", re.IGNORECASE)
# Code that keeps what it makes in an object, such as "self.x, self.y = ..."
KEEPS = re.compile(r"\w+\.\w[^=(]*=(?!=)")


def helpers_caller(
    start: Origin | None, origin: Origin, frames: Frames, origins: Origins
) -> Line | None:
    """The line that called a function that has ended, and needs its tensors on the CPU.

    There, the tensor, or what was computed from it, met others that the function made
    on the CPU. So it's moved where the function returned.
    The same holds for a function to which nothing tells the device. But if the function
    itself moves another such tensor, it should move this one, too.
    """
    running = {frame.f_code for _, frame in frames}
    root = origin.root
    code = root.function
    if code is None or code in running or origin.makers:
        return None
    if not code.co_flags & inspect.CO_OPTIMIZED:  # a class's body
        return None
    chain = list(start.chain()) if start else []
    if is_kept(root):
        # Others on the CPU meet what the object keeps, so it's moved where it's used.
        taken = [one.line for one in chain if one.function in (*running, None)]
        has_met = not root.meetings <= {one.line for one in chain}
        return taken[-1] if has_met and taken else None
    if moves_sister(root, origins):
        return None
    inside = lines_of(code)
    met_later = any(
        line.file != code.co_filename or line.number not in inside
        for one in chain
        if one.function is code or one.is_same
        for line in one.meetings
    )
    mixes = any(one.mixes for one in chain if one.function is code)
    if not (root.meetings or met_later or mixes):
        told = (
            c
            for c in root.calls
            if not (is_untold(c.code) or is_moved_outside(c.code, origins))
        )
        caller = next(told, None)
        return caller.line if caller and caller.code is not code else None
    return next((call.line for call in root.calls if call.code in running), None)


def is_untold(code: CodeType) -> bool:
    """Whether a function can't know the device: it gets nothing, and finds it nowhere.

    It finds it in its file's text, or in what the file's functions see.
    """
    if code.co_name in INNER:
        return True
    takes = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
    gets = code.co_argcount + code.co_kwonlyargcount + (code.co_flags & takes)
    if gets or code.co_freevars or not code.co_flags & inspect.CO_OPTIMIZED:
        return False
    file = code.co_filename
    if "cuda" in "".join(linecache.getlines(file)):
        return False
    main = vars(sys.modules["__main__"])  # also a notebook's, whose cells are files
    scopes = (vars(module) for module in list(sys.modules.values()))
    scope = next((s for s in scopes if s.get("__file__") == file), main)
    seen = list(scope.values())
    seen += [getattr(value, "__dict__", {}).get("device") for value in seen]
    return not any(
        isinstance(value, torch.device | str) and "cuda" in str(value) for value in seen
    )


def is_moved_outside(code: CodeType, origins: Origins) -> bool:
    """Whether a function's file leaves moves to others, which move what it makes.

    The file names no device, and a line elsewhere moves a tensor that was made in it.
    """
    file = code.co_filename
    if OF_DEVICE.search("".join(linecache.getlines(file))):
        return False
    return any(made.file == file != mover.file for made, mover in origins.moved.items())


def joins_caller(start: Origin | None, origin: Origin, frames: Frames) -> Line | None:
    """The line that called a function that joined one of its own tensors to another.

    The other one came from its caller. Both are on the CPU, and the function has ended.
    To move one of them isn't enough, so the result is moved where it was returned.
    """
    running = {frame.f_code for _, frame in frames}
    is_single = origin.copies or origin.makers or origin.is_of_loop
    chain = start.chain() if start and not is_single else ()
    for ancestor in takewhile(lambda one: one is not origin, chain):
        code, line = ancestor.function, ancestor.line.code
        if not ancestor.joins or code is None or code in running or ancestor.makers:
            continue
        # A method may keep the tensor in its object, unless it returns it at once.
        if "self" not in code.co_varnames or line.startswith("return"):
            callers = (call.line for call in ancestor.calls if call.code in running)
            return next(callers, None)
    return None


def moves_sister(root: Origin, origins: Origins) -> bool:
    """Whether a function moves what a line beside the tensor's own line made."""
    inside = lines_of(root.calls[0].code)
    here, block = statement_at(root.line)
    for statement in block:
        numbers = range(statement.lineno, (statement.end_lineno or 0) + 1)
        lines = (Line(root.line.file, number) for number in numbers)
        movers = [origins.moved.get(line) for line in lines]
        if statement is not here and any(
            mover and mover.file == root.line.file and mover.number in inside
            for mover in movers
        ):
            return True
    return False


def unmoved_line(start: Origin | None, origins: Origins) -> tuple[Line, str] | None:
    """The line that got the tensor from elsewhere and didn't move it.

    Other lines of the same block, which call the same functions, moved theirs.
    """
    chain = list(start.chain()) if start else []
    for ancestor in chain:
        if ancestor.function is chain[-1].function:
            return None
        here, block = statement_at(ancestor.line)
        if not isinstance(here, ast.Assign) or moves(here):
            continue
        for other in block:
            line = Line(ancestor.line.file, other.lineno)
            is_moving = isinstance(other, ast.Assign) and line in origins.moving
            if is_moving and functions_in(here) & functions_in(other):
                at = Line(line.file, here.lineno)
                return at, f"{beside(line, at)} moves its tensor: do so here, too"
    return None


def filled_line(origin: Origin, start: Origin) -> tuple[Line, str] | None:
    """The line that made a tensor on the CPU for values from the device.

    It is `origin`'s tensor, or one that the same function made on the way to `start`'s.
    What an object keeps doesn't count, since a replay buffer, say, may stay on the CPU.
    """
    later = takewhile(lambda one: one is not origin, start.chain())
    same = [one for one in later if one.function is origin.function]
    for ancestor in (*same, *origin.chain()):
        at, line = ancestor.filled, ancestor.line
        is_own = not (ancestor.makers or ancestor.copies or KEEPS.match(line.code))
        is_own &= not isinstance(ancestor.tensor(), nn.Parameter)  # load_state_dict
        if at and is_own:
            return (
                line,
                f"{beside(at, line)} fills this tensor with values on the device: make "
                "it there, with device=",
            )
    return None


def sisters_line(
    origin: Origin, frames: Frames, origins: Origins
) -> tuple[Line, str] | None:
    """The line that moved another tensor, made by the same line or in the same call.

    The call's function has returned, and its caller moved the other tensor. What a
    method keeps in its object doesn't count, since its caller gets none of it.
    """
    end = "several tensors, and this line doesn't move all of them"
    failing = frames[-1][0] if frames else None  # it moves nothing that is left behind
    mover = origins.movers.get(tuple(origin.calls))
    if mover and mover == origin.line:
        return mover, "this line makes several tensors and doesn't move all of them"
    if mover and mover != failing:
        return mover, f"line {origin.line.number} makes {end}"
    running = [(id(frame), frame.f_code) for _, frame in frames]
    for result in () if KEEPS.match(origin.line.code) else origin.results:
        function, code, caller = result
        mover = origins.movers.get(result)
        if mover and mover != failing and (function, code) not in running:
            return mover, f"line {caller.line.number} gets {end}"
    return None


def calling_line(
    origin: Origin | None, frames: Frames, origins: Origins
) -> tuple[Line, str] | None:
    """The line that got a tensor from a function whose other callers move it.

    The function has returned. If its callers move what it makes, then it is the caller
    that should have moved this tensor, too. What a method keeps in its object doesn't
    count, since its caller gets none of it.
    """
    running = {frame.f_code for _, frame in frames}
    result: Origin | None = None  # the latest tensor that such a function made
    for ancestor in origin.chain() if origin else ():
        codes = (c.code for c in ancestor.calls if c.code.co_name not in INNER)
        code = next(codes, None)
        if code is None or code.co_name == "<module>" or code in running:
            result = None
            continue
        result = result or ancestor
        mover = origins.moved.get(ancestor.line)
        inside = lines_of(result.calls[0].code)
        if mover and mover.file == result.line.file and mover.number in inside:
            continue  # this is no caller
        callers = (call.line for call in result.calls if call.code in running)
        line = next(callers, None)
        if mover and line and not is_kept(result):
            at = beside(mover, line)
            name = getattr(result.function, "co_name", "")
            return (
                line,
                f"{name} returns a tensor on the CPU: move it here with .to(device), "
                f"as {at} does",
            )
    return None


def is_kept(result: Origin) -> bool:
    """Whether a function puts a tensor that it makes into an object."""
    here, _ = statement_at(result.line)
    if KEEPS.match(result.line.code):
        return True
    targets = here.targets if isinstance(here, ast.Assign) else []
    names = {part for target in targets for part in names_in(target)}
    inside = lines_of(result.calls[0].code)
    return any(
        isinstance(node, ast.Assign | ast.Expr)
        and node.lineno in inside
        and is_of_object(node)
        and any(takes(value, names) for value in values_in(node))
        for node in ast.walk(tree(result.line.file))
    )


def is_of_object(statement: ast.Assign | ast.Expr) -> bool:
    """Whether a statement puts something into an attribute, or into a list there."""
    if isinstance(statement, ast.Expr):
        return "." in (list_of(statement) or "")
    places = [t.value if isinstance(t, ast.Subscript) else t for t in statement.targets]
    return any(isinstance(place, ast.Attribute) for place in places)


def values_in(statement: ast.Assign | ast.Expr) -> list[ast.expr]:
    """What a statement assigns, or adds to a list: each part of a tuple, too."""
    value = statement.value
    values = [value]
    if isinstance(statement, ast.Expr) and isinstance(value, ast.Call):
        values = value.args
    return [part for value in values for part in getattr(value, "elts", [value])]


def takes(value: ast.expr, names: set[str]) -> bool:
    """Whether a value is one of these variables, or a part or a copy of one."""
    while True:
        if isinstance(value, ast.Subscript):
            value = value.value
        elif isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            if value.func.attr not in SAME:
                return False
            value = value.func.value
        else:
            return isinstance(value, ast.Name) and value.id in names


def beside(line: Line, other: Line) -> str:
    """A line's number, for a sentence on another line."""
    place = "" if line.file == other.file else f" of {Path(line.file).name}"
    return f"line {line.number}{place}"
