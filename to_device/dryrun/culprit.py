"""The line that should have moved a tensor to the device."""

import ast
import inspect
import linecache
import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from types import FrameType
from typing import Any

from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from to_device.dryrun.origins import Call, Origin, Origins
from to_device.dryrun.report import AFTER
from to_device.dryrun.script import MOVES, Line
from to_device.words import Words

words = Words(__file__)
Frames = Sequence[tuple[Line, FrameType]]  # the outermost function first
PART = re.compile(r"[\w.]+(\.\w+|\[.+\]) *=")  # code such as "model.head[1] = ..."
INNER = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")  # parts of functions
# Code that keeps what it makes in an object, such as "self.x, self.y = ..."
KEEPS = re.compile(r"\w+\.\w[^=(]*=(?!=)")
# The last part of the name of the device, as in `.to(self.device)`.
TO_NAME = re.compile(r"\.to\( *(?:device *= *)?(?:\w+\.)*(\w+) *[,)]")
DOTTED = re.compile(r"[\w.]+")
ASSIGNED = re.compile(r"load_state_dict\(.*assign *= *True")


def line_to_change(
    tensor: Tensor, line: Line, frames: Frames, origins: Origins
) -> tuple[Line, str]:
    """The line that should have moved this tensor from the CPU, and why."""
    if at := origins.moved_back.get(id(tensor)):
        return (
            at,
            "this line moves the model back to the CPU, and later lines "
            "use it on the device",
        )
    start = origins.of(tensor)
    for ancestor in start.chain() if start else ():
        if ancestor.copies or is_moved(ancestor):
            break
        if ancestor.kept:
            return line_of_cpu(ancestor.kept, frames)
        if at := ancestor.passed or passing_line(ancestor.tensor(), frames, origins):
            return (
                at,
                "this function moves tensors, but this line passes on one "
                "that is still on the CPU",
            )
    origin = origin_to_move(start, line, frames)
    if origin is None:
        return line, "this line uses a tensor on the CPU"
    *_, root = origin.chain()
    if root.is_fetched and origin.line != root.line:
        return (
            line,
            f"line {root.line.number} copied a tensor to the CPU, but a "
            "tensor that it meets here stayed on the GPU: copy both, or "
            "neither",
        )
    if root.is_fetched:
        return (
            root.line,
            "this line copies a tensor to the CPU, but the tensors that "
            "it meets stay on the GPU",
        )
    if is_moved(origin.source) or "deepcopy" in origin.line.code:
        early = next(filter(comes_before_a_move, origin.calls), origin.calls[0])
        return (
            early.line,
            "this line used a parameter before the model was moved: move "
            "the model first",
        )
    for at, copy in reversed([*origin.copies, *(origin.source or origin).copies]):
        if copy() is None and is_dropped(at):
            return at, "this copy on the device is lost unless you assign it to a name"
    is_single = origin.copies or origin.makers or origin.is_of_loop
    mover = None if is_single else origins.movers.get(tuple(origin.calls))
    if mover:
        return (
            mover,
            f"line {origin.line.number} makes several tensors, and this "
            "line doesn't move all of them",
        )
    if not is_single and (missed := calling_line(start, frames, origins)):
        return missed
    is_made_here = root.function and root.function is origin.function
    if is_made_here and not (is_single or root.is_of_loop):
        origin = root
    return place(origin, frames, start or origin)


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
        callers = (call.line for call in result.calls if call.code in running)
        line = next(callers, None)
        if mover and line and not KEEPS.match(result.line.code):
            at = f"line {mover.number}"
            if mover.file != line.file:
                at += f" of {Path(mover.file).name}"
            name = getattr(result.function, "co_name", "")
            return (
                line,
                f"{name} returns a tensor on the CPU: move it here with .to(device), "
                f"as {at} does",
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


def line_of_cpu(move: Line, frames: Frames) -> tuple[Line, str]:
    """The line that chose the CPU for a move that left a tensor there, and why.

    If the device comes from a parameter whose default is the CPU, the line is
    the first call that doesn't pass the parameter. Otherwise, it is the move's
    line.
    """
    match = TO_NAME.search(move.code)
    name = match[1] if match else ""
    for line, frame in frames:
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
                    return Line(
                        line.file, call.lineno
                    ), f"this call doesn't pass {name}, whose default is the CPU"
    return move, "this line moves the tensor to the CPU"


def origin_to_move(origin: Origin | None, line: Line, frames: Frames) -> Origin | None:
    """The tensor that should have been moved: this one, or one it was computed from.

    The search begins at this tensor, which failed at `line`, and goes on to
    its source, the source's source, and so on. It returns the first tensor
    that was copied to the device, or computed from a parameter on the device.
    It skips tensors that a function computed from other functions' tensors, if
    this function has returned. It stops at a tensor that a model's constructor
    made, or that another line than `line` computed. Then it returns the latest
    tensor that a constructor made. If there is none, it returns the tensor at
    which it stopped.
    """
    chain = list(origin.chain()) if origin else []
    running = {frame.f_code for _, frame in frames}
    built = [o for o in chain if o.makers and not isinstance(o.tensor(), nn.Parameter)]
    for ancestor in chain:
        if ancestor.copies or is_moved(ancestor.source):
            return ancestor
        function = ancestor.function
        if function not in running and function is not ancestor.first_function:
            continue
        is_new = ancestor.is_of_loop or not ancestor.is_same
        if ancestor in built or (ancestor.line != line and is_new):
            return (built or [ancestor])[0]
    return chain[-1] if chain else None


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


def unpacking_line(
    tensors: Sequence[Any], loop: Line, frames: Frames
) -> tuple[Line, str]:
    """The line that took a tensor out of its batch, and the tensor's name there.

    `tensors` are the tensor and what it was converted to. Looks in the outermost
    function that has one of them. If no assignment took it out, the line is the loop's
    own.
    """
    for line, frame in frames:
        named = (variables(frame, tensor) for tensor in tensors)
        if names := next(filter(None, named), None):
            is_here = loop.file == line.file and loop.number < line.number
            first = max(frame.f_code.co_firstlineno, is_here * loop.number)
            earlier = range(first, line.number)
            numbers = [n for n in assignments(line.file, names) if n in earlier]
            return (Line(line.file, max(numbers)) if numbers else loop), names[0]
    return loop, "the batch"


def variables(frame: FrameType, tensor: Any) -> list[str]:
    """The names of a function's variables, also global ones, that are this tensor.

    For None, which stands for a tensor that no longer exists, there are no names.
    """
    scope = {**frame.f_globals, **frame.f_locals} if tensor is not None else {}
    return [name for name, value in scope.items() if value is tensor]


def attributes(holder: Any, tensor: Any) -> list[str]:
    """The names of the attributes of an object that are this tensor, or hold it.

    Containers in containers aren't searched, since one may contain itself.
    """
    names = []
    for name, value in getattr(holder, "__dict__", {}).items():
        parts = value.values() if isinstance(value, dict) else value
        parts = parts if isinstance(value, dict | list | tuple) else [value]
        if any(part is tensor for part in parts):
            names.append(name)
    return names


def assignments(file: str, names: Collection[str]) -> list[int]:
    """The numbers of the lines that assign to variables or attributes."""
    return [
        node.lineno
        for node in ast.walk(tree(file))
        if isinstance(node, ast.Assign)
        for part in ast.walk(node.targets[0])
        if ast.unparse(part) in names
    ]


def tree(file: str) -> ast.Module:
    return ast.parse("".join(linecache.getlines(file)))


def is_dropped(line: Line) -> bool:
    """Whether a line calls `.to()` or `.cuda()` and at most stores the result.

    It may store the result in a variable, a tuple, or a comprehension's list.
    """
    try:
        nodes = list(ast.walk(ast.parse(line.code)))
    except SyntaxError:  # the line is only a part of its statement
        return True
    values = [n.value for n in nodes if isinstance(n, ast.Expr | ast.Assign)]
    values += [n.elt for n in nodes if isinstance(n, ast.ListComp | ast.GeneratorExp)]
    values += [part for n in nodes if isinstance(n, ast.Tuple) for part in n.elts]
    calls = [v.func for v in values if isinstance(v, ast.Call)]
    return any(getattr(function, "attr", "") in ("to", "cuda") for function in calls)


def place(origin: Origin, frames: Frames, start: Origin) -> tuple[Line, str]:
    """The line that made the origin's tensor, or a line near it, and why.

    `start` is the origin of the tensor that failed.
    """
    tensor, line = origin.tensor(), origin.line
    if ASSIGNED.search(line.code):
        return (
            line,
            "with assign=True, the model gets the file's CPU tensors: "
            "move the model after this line",
        )
    is_parameter = isinstance(tensor, nn.Parameter)
    for at, maker in origin.makers:
        module = maker()
        registered = [*module.parameters(), *module.buffers()] if module else [tensor]
        if not any(tensor is part for part in registered):
            names = [f"self.{key}" for key in attributes(module, tensor)]
            lines = assignments(at.file, names) or [at.number]
            later = [number for number in lines if number >= at.number]
            why = words("why.layers") if is_parameter else words("why.buffer")
            return Line(at.file, min(later, default=max(lines))), why
    if origin.makers or is_parameter:
        running = {id(frame) for _, frame in frames}
        for caller, function in origin.callers:
            if function in running or PART.match(line.code):
                break
            line = caller
        return line, "this model was never moved: add .to(device)"
    if origin.is_of_loop:
        before = list(start.chain())
        before = before[: before.index(origin)] if origin in before else []
        converted = takewhile(lambda later: later.is_same, reversed(before))
        tensors = [tensor, *(later.tensor() for later in converted)]
        line, name = unpacking_line(tensors, line, frames)
        return (
            line,
            f"{AFTER}{name} is still on the CPU: move it with .to(device)",
        )
    return (
        line,
        "this tensor was made on the CPU and never moved: add .to(device)"
        if origin.source
        else "this line makes a tensor on the CPU: add device= or .to(device)",
    )
