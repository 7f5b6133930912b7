"""The line that should have moved a tensor to the device."""

import ast
import inspect
import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from itertools import takewhile, zip_longest
from types import FrameType
from typing import Any

from torch import Tensor, nn

from to_device.dryrun.callers import (
    beside,
    calling_line,
    filled_line,
    helpers_caller,
    joins_caller,
    sisters_line,
    unmoved_line,
)
from to_device.dryrun.left import where_it_was_left
from to_device.dryrun.model_moves import MEETS_DEVICE, before_the_move, is_moved
from to_device.dryrun.origins import Maker, Origin, Origins, receiver
from to_device.dryrun.report import AFTER
from to_device.dryrun.script import Line
from to_device.dryrun.statements import (
    FETCHES,
    assignments,
    copy_of,
    is_default,
    is_dropped,
    joined_to,
    list_of,
    makes_empty,
    may_take_device,
    moves,
    names_in,
    statement_at,
)
from to_device.dryrun.uses import Side, arguments_of, is_in_loop, targets, wanted
from to_device.words import Words

words = Words(__file__)
Frames = Sequence[tuple[Line, FrameType]]  # the outermost function first
PART = re.compile(r"[\w.]+(\.\w+|\[.+\]) *=")  # code such as "model.head[1] = ..."
ASSIGNED = re.compile(r"load_state_dict\(.*assign *= *True")


def line_to_change(
    tensor: Tensor,
    line: Line,
    frames: Frames,
    origins: Origins,
    others: Sequence[Tensor] = (),
) -> tuple[Line, str]:
    """The line that should have moved this tensor from the CPU, and why.

    `others` are the tensors on the device that it met at `line`.
    """
    start = origins.of(tensor)
    if left := where_it_was_left(start, frames, origins):
        return left
    may_stay = is_result(others, start, frames, origins)
    told = wanted(tensor, others, frames) if may_stay else None
    may_stay &= told is None
    if told and told[0] is Side.HOST:
        result = making_line(others, line, frames)
        return (
            result,
            f"{beside(told[1], result)} takes the result for a tensor on the CPU: "
            "bring this one to the CPU, with .cpu()",
        )
    held = [key for data in origins.datasets for key in attributes(data, tensor)]
    if held and (at := taking_line(tensor, held, start, line, frames)):
        return (
            at,
            "the tensor is a data set's, which stays on the CPU: move it here with "
            ".to(device)",
        )
    origin = origin_to_move(start, line, frames)
    if origin is None:
        return line, "this line uses a tensor on the CPU"
    if found := fetching_line(tensor, others, origin, line, frames):
        return found
    if early := before_the_move(start, origin):
        return early
    for at, copy in reversed([*origin.copies, *(origin.source or origin).copies]):
        if copy() is None and is_dropped(at):
            return at, "this copy on the device is lost unless you assign it to a name"
    if filled := filled_line(origin, start or origin):
        return filled
    result = making_line(others, line, frames)
    if may_stay and start and line in start.meetings:
        return (
            result,
            f"{beside(line, result)} works with tensors on the CPU at other times: "
            "bring this one to the CPU, with .cpu()",
        )
    is_single = origin.copies or origin.makers or origin.is_of_loop
    if not is_single and (
        missed := unmoved_line(start, origins)
        or sisters_line(origin, frames, origins)
        or calling_line(start, frames, origins)
    ):
        return missed
    root = origin.root
    is_made_here = root.function and root.function is origin.function
    if is_made_here and not (is_single or root.is_of_loop):
        origin = root
    if at := joins_caller(start, origin, frames) or helpers_caller(
        start, origin, frames, origins
    ):
        return at, "this line gets a tensor on the CPU: move it here with .to(device)"
    at, why = place(origin, frames, start or origin)
    stays = why_on_host(start, result, origins) if may_stay and start else ""
    if not stays:
        return at, why
    return (
        result,
        f"bring this one to the CPU, with .cpu(), since {stays}; or else move that one "
        f"to the device, at {beside(at, result)}",
    )


def is_result(
    others: Sequence[Tensor], start: Origin | None, frames: Frames, origins: Origins
) -> bool:
    """Whether the tensors on the device may be results that belong on the CPU.

    They don't if a model computes with them, if the script has moved them itself, or if
    autograd records them: a training step stays on the device.
    """
    _, frame = frames[-1] if frames else (None, None)
    in_model = frame and isinstance(receiver(frame)[1], nn.Module)
    if not others or in_model or start is None or start.makers or start.moved_back:
        return False
    of_others = [origins.of(other) for other in others]
    is_moved = any(origin and origin.source for origin in of_others)
    is_trained = any(other.requires_grad for other in others)
    is_parameter = any(isinstance(other, nn.Parameter) for other in others)
    return not (is_moved or is_trained or is_parameter or start.root.is_fetched)


def making_line(others: Sequence[Tensor], line: Line, frames: Frames) -> Line:
    """The line that gave a variable one of the tensors on the device.

    The arguments that a function computed it from count as well. Looks in the functions
    that run, the outermost first. If no variable has one, it is the line that failed.
    """
    found = list(others)
    for at, frame in reversed(frames[1:]):
        found += arguments_of(at, frame, found)
    for at, frame in frames:
        here = frame.f_locals.items()
        names = [k for k, v in here if any(v is one for one in found)]
        running, _ = statement_at(at)
        end = running.lineno if running else at.number
        earlier = range(frame.f_code.co_firstlineno, end)
        if numbers := [n for n in assignments(at.file, names) if n in earlier]:
            return Line(at.file, max(numbers))
    return line


def line_for_numpy(line: Line, frames: Frames) -> Line | None:
    """The line that made what a function for NumPy's arrays got, if it got a tensor.

    One of its arguments is an array, and another one is used where it failed.
    """
    statement, _ = statement_at(line)
    if statement is None or len(frames) < 2:
        return None
    _, frame = frames[-1]
    code, used = frame.f_code, names_in(statement)
    given = {n: frame.f_locals.get(n) for n in code.co_varnames[: code.co_argcount]}
    is_for_numpy = any(type(value).__name__ == "ndarray" for value in given.values())
    tensors = [v for n, v in given.items() if n in used and isinstance(v, Tensor)]
    on_device = [tensor for tensor in tensors if not tensor.is_cpu]
    return making_line(on_device, line, frames) if is_for_numpy and on_device else None


def why_on_host(host: Origin, result: Line, origins: Origins) -> str:
    """Why a tensor seems to belong on the CPU; "" if nothing says so.

    It met others on the CPU, or the line of the result gave the device a copy of what
    it comes from. In a loop, that doesn't count: there, a single move before the loop
    is better than a copy in each turn.
    """
    if is_in_loop(result):
        return ""
    if any(origins.moved.get(ancestor.line) == result for ancestor in host.chain()):
        return "this line moves only what the model needs, and the other one stays"
    met = min(host.meetings, default=None)
    return f"{beside(met, result)} uses the other one there" if met else ""


def fetching_line(
    tensor: Tensor,
    others: Sequence[Tensor],
    origin: Origin,
    line: Line,
    frames: Frames,
) -> tuple[Line, str] | None:
    """The line that copied one tensor to the CPU and not the other, if one did."""
    root = origin.root
    # What a model computes stays on the device, and so does what autograd still needs.
    method = root.method if root.is_fetched else None
    in_forward = method is not None and method.co_name == "forward"
    if not in_forward and (at := line_without_copy(tensor, others, root, line, frames)):
        return at, "a line beside this one copies a tensor to the CPU: do so here, too"
    if not root.is_fetched:
        return None
    is_argument = any(at == root.line for at, _ in frames)
    stays = in_forward or tensor.requires_grad
    if origin.line == root.line or is_argument or stays:
        return root.line, MEETS_DEVICE
    # A function that only gets the tensors works for those on the GPU, too.
    code = frames[-1][1].f_code if frames else None
    gets = (
        code and code.co_name[0] != "<" and code not in (root.function, origin.function)
    )
    at = origin.line if gets else line
    return (
        at,
        f"{beside(root.line, at)} copied a tensor to the CPU, but a "
        "tensor that it meets here stayed on the GPU: copy both, or neither",
    )


def line_without_copy(
    tensor: Tensor, others: Sequence[Tensor], root: Origin, line: Line, frames: Frames
) -> Line | None:
    """The line that should have copied one of `others` to the CPU, as its neighbor did.

    Two such lines stand in one block. Each assigns a tensor to a variable, adds it to
    a list, or joins it to what it has collected in a variable on the CPU.
    """
    if not frames:
        return None
    _, frame = frames[-1]
    here = statement_at(line)[0]
    if root.is_fetched:
        known = {name for other in others for name in variables(frame, other)}
        sources = [here] if here else []
        for name in known:
            numbers = [n for n in assignments(line.file, [name]) if n <= line.number]
            made = (statement_at(Line(line.file, n))[0] for n in numbers[-1:])
            sources += filter(None, made)
        used = {name for source in sources for name in names_in(source)}
        copying, block = statement_at(root.line)
        copies = set(map(ast.unparse, targets(copying))) if copying else set()
        found = [
            statement
            for statement in block
            if not (moves(statement) or names_in(statement) & copies)
            and (copy_of(statement) in known or list_of(statement) in used)
        ]
        if copying and found:
            nearest = min(found, key=lambda s: abs(s.lineno - copying.lineno))
            return Line(root.line.file, nearest.lineno)
    elif here and joined_to(here) in variables(frame, tensor) and not moves(here):
        for statement in statement_at(line)[1]:
            if joined_to(statement) and FETCHES.search(ast.unparse(statement)):
                return line
    return None


def taking_line(
    tensor: Tensor,
    keys: Collection[str],
    origin: Origin | None,
    line: Line,
    frames: Frames,
) -> Line | None:
    """The line that took a tensor out of an object and used it, or passed it on.

    `keys` are the object's attributes that hold the tensor. Looks in the functions that
    run, the outermost first.
    """
    made = {ancestor.line for ancestor in origin.chain()} if origin else set()

    def assigned(at: Line, frame: FrameType) -> tuple[list[str], list[Line]]:
        """The function's variables that are the tensor, and where they got it."""
        names = [name for name, value in frame.f_locals.items() if value is tensor]
        before = range(frame.f_code.co_firstlineno, at.number)
        taken: list[Line] = []
        for name in names:
            numbers = assignments(at.file, [name])
            lines = {Line(at.file, number) for number in numbers if number in before}
            taken += () if lines & made else lines  # or else, it was made there
        return names, sorted(taken)

    for outer, inner in zip_longest(frames, frames[1:]):
        if taken := assigned(*outer)[1]:
            return taken[-1]
        names, taken = assigned(*inner) if inner else ([], [])
        if names and not taken:
            return outer[0]
    is_named = any(re.search(rf"\.{key}\b", line.code) for key in keys)
    return line if is_named else None


def origin_to_move(origin: Origin | None, line: Line, frames: Frames) -> Origin | None:
    """The tensor that should have been moved: this one, or one it was computed from.

    The search begins at this tensor, which failed at `line`, and goes on to
    its source, the source's source, and so on. It returns the first tensor
    that was copied to the device, or computed from a parameter on the device.
    It skips tensors that a function computed from other functions' tensors, if
    this function has returned, and those that a running function computed from a
    batch that it got. It stops at a tensor that a model's constructor made, or that
    another line than `line` computed. Then it returns the latest tensor that a
    constructor made. If there is none, it returns the tensor at which it stopped.
    """
    chain = list(origin.chain()) if origin else []
    running = {frame.f_code for _, frame in frames}
    owners = [receiver(frame)[1] for _, frame in frames]
    modules = [owner for owner in owners if isinstance(owner, nn.Module)]
    built = [
        origin
        for origin in chain
        if (origin.makers and not isinstance(origin.tensor(), nn.Parameter))
        or is_kept(origin, modules)
    ]
    for ancestor in chain:
        if ancestor.copies or is_moved(ancestor.source):
            return ancestor
        function = ancestor.function  # None for the script itself, which always runs
        has_ended = function is not None and function not in running
        if has_ended and function is not ancestor.first_function:
            continue
        is_new = ancestor.is_of_loop or not ancestor.is_same
        if ancestor in built or (
            ancestor.line != line
            and is_new
            and not is_of_given_batch(ancestor, chain, frames)
        ):
            return (built or [ancestor])[0]
    return chain[-1] if chain else None


def is_of_given_batch(origin: Origin, chain: Sequence[Origin], frames: Frames) -> bool:
    """Whether a running function computed this from a batch that it got.

    Then it is the batch that nobody has moved. So it is if the function has no variable
    for the tensor, as in `net(x[:, 1:])`.
    """
    if origin.is_of_loop or not any(one.is_of_loop for one in chain):
        return False
    frame = next((f for _, f in frames if f.f_code is origin.function), None)
    if origin.function is None and frames:
        frame = frames[0][1]
    here, _ = statement_at(origin.line)
    if frame is None or here is None:
        return False
    tensor = origin.tensor()
    if tensor is not None and not any(v is tensor for v in frame.f_locals.values()):
        return True
    known = {name for one in chain for name in variables(frame, one.tensor())}
    code = frame.f_code
    given = known.intersection(code.co_varnames[: code.co_argcount])
    return bool(given & names_in(here))


def is_kept(origin: Origin, modules: Sequence[nn.Module]) -> bool:
    """Whether one of the modules keeps this tensor as a plain attribute."""
    tensor = origin.tensor()
    if tensor is None or isinstance(tensor, nn.Parameter):
        return False
    names = [name for module in modules for name in attributes(module, tensor)]
    return any(not name.startswith("_") for name in names)


def unpacking_line(
    tensors: Sequence[Any], loop: Line, frames: Frames
) -> tuple[Line, str]:
    """The line that took a tensor out of its batch, and the tensor's name there.

    `tensors` are the tensor and what it was converted to. Looks in the outermost
    function that has one of them. If no assignment took it out, the line is the loop's
    own.
    """
    for line, frame in frames:
        if at := keeping_part(tensors, line, frame):
            return at
        named = (variables(frame, tensor) for tensor in tensors)
        if names := next(filter(None, named), None):
            is_here = loop.file == line.file and loop.number < line.number
            first = max(frame.f_code.co_firstlineno, is_here * loop.number)
            earlier = range(first, line.number)
            numbers = [n for n in assignments(line.file, names) if n in earlier]
            # A line that moves this tensor hasn't run: it stands in another branch.
            taken = [
                at
                for at in (Line(line.file, number) for number in numbers)
                if (statement := statement_at(at)[0]) and not moves(statement)
            ]
            return (taken[-1] if taken else loop), names[0]
    return loop, "the batch"


def keeping_part(
    tensors: Sequence[Any], line: Line, frame: FrameType
) -> tuple[Line, str] | None:
    """The line that put a tensor into a dictionary or a list, and the name there.

    Such as `batch["x"] = batch["x"].float()`, before the function reached `line`.
    """
    for name, value in frame.f_locals.items():
        pairs = list(value.items()) if isinstance(value, dict) else []
        pairs += enumerate(value) if isinstance(value, list) else ()
        for key, part in pairs:
            if not isinstance(part, Tensor) or not any(part is one for one in tensors):
                continue
            first = frame.f_code.co_firstlineno
            numbers = assignments(line.file, [f"{name}[{key!r}]"])
            earlier = [Line(line.file, n) for n in numbers if first <= n < line.number]
            for at in reversed(earlier):
                statement = statement_at(at)[0]
                if statement and not moves(statement):
                    return at, f"{name}[{key!r}]"
    return None


def unregistering(origin: Origin) -> Maker | None:
    """The module that made the tensor and doesn't move it, since it isn't registered.

    None if the modules that made it register it, as a parameter or a buffer.
    """
    tensor = origin.tensor()
    for maker in origin.makers:
        module = maker.module()
        registered = [*module.parameters(), *module.buffers()] if module else [tensor]
        if not any(tensor is part for part in registered):
            return maker
    return None


def keeping_line(module: nn.Module | None, tensor: Any, maker: Maker) -> Line:
    """The line that keeps a tensor as a plain attribute of a module, or of one inside.

    For what was put into a list or a dictionary that began empty, it is the line that
    made the list. If none says so, it is the line in the module's `__init__` that made
    the tensor, or in a method that this called.
    """
    made = maker.line
    names = own_names(module, attributes(module, tensor))
    if names or module is None:
        lines = assignments(made.file, names) or [made.number]
        later = [number for number in lines if number >= made.number]
        return Line(made.file, min(later, default=max(lines)))
    for part in module.modules():
        if kept := assigned_in(part, attributes(part, tensor)):
            return kept[-1]
        holds = [
            name
            for name, value in vars(part).items()
            if any(
                tensor is own for inner in layers(value) for own in inner.parameters()
            )
        ]
        empty = [at for at in assigned_in(part, holds) if makes_empty(at)]
        if empty:
            return empty[-1]
    return maker.inner


def own_names(module: nn.Module | None, names: Collection[str]) -> list[str]:
    """Attributes as the class of the module writes them, such as "self.layers"."""
    kind: Any = type(module)
    code = getattr(inspect.unwrap(kind.__init__), "__code__", None)
    own = code.co_varnames[0] if code and code.co_argcount else "self"
    return [f"{own}.{name}" for name in names]


def assigned_in(module: nn.Module, names: Collection[str]) -> list[Line]:
    """The lines of a module's class that assign to these attributes, the last last."""
    with suppress(OSError, TypeError):  # there is no source
        code, first = inspect.getsourcelines(type(module))
        file = inspect.getsourcefile(type(module)) or ""
        inside = range(first, first + len(code))
        numbers = assignments(file, own_names(module, names)) if names else []
        return [Line(file, number) for number in sorted(numbers) if number in inside]
    return []


def layers(value: Any) -> list[nn.Module]:
    """The modules that are in a plain list or dictionary."""
    parts = value.values() if isinstance(value, dict) else value
    parts = parts if isinstance(value, dict | list | tuple) else ()
    return [part for part in parts if isinstance(part, nn.Module)]


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
    if maker := unregistering(origin):
        why = words("why.layers") if is_parameter else words("why.buffer")
        return keeping_line(maker.module(), tensor, maker), why
    if origin.makers or is_parameter:
        running = {id(frame) for _, frame in frames}
        for caller, function in origin.callers:
            if function in running or PART.match(line.code):
                break
            line = caller
        if "Parameter(" in line.code and not origin.makers:
            return line, "this parameter is of no model: make it with device="
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
    if origin.source:
        return line, "this tensor was made on the CPU and never moved: add .to(device)"
    if is_default(line, origin.calls[0].code.co_name):
        return (
            line,
            "this default is a tensor on the CPU: move the parameter in the function, "
            "with .to(device)",
        )
    how = "add device= or .to(device)" if may_take_device(line) else "add .to(device)"
    return line, f"this line makes a tensor on the CPU: {how}"
