"""An error of the script: whether devices caused it, and which line has to change."""

import ast
import inspect
import linecache
import re
import traceback
from collections.abc import Collection, Iterator, Sequence
from types import FrameType
from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer

from core.dryrun import cuda
from core.dryrun.origins import Origin, Origins
from core.dryrun.report import Argument, Failure
from core.dryrun.script import Line
from core.sim.simulation import in_cuda_words
from core.words import Words

words = Words(__file__)
Frames = Sequence[tuple[Line, FrameType]]  # the outermost function first
# An error gets an attribute of this name: the tensors that the failed call was given.
ARGUMENTS = "_arguments"
MOST_CHARACTERS = 10_000  # longer messages are cut
OF_DEVICES = re.compile(
    "same device|Input type|can't convert .* device|device type for generator"
    "|invalid device ordinal|out of memory|in forked subprocess|cannot pin"
    "|indices should be either on|on device|is on (cpu|cuda)|deserialize object on"
    "|must be on|CPU int64 tensor|cpu and cuda|cuda.* and cpu|RNG state must be"
)
WITHOUT_LEAF = re.compile("non-leaf Tensor|empty parameter list|'NoneType'")
REASONS: dict[str, str] = words.table("reasons")  # by a part of an error's message
IN_WORKER = re.compile(r'File "(.+)", line (\d+)')
ATTRIBUTE = re.compile(r"[\w.]+\.\w+ *=")  # code such as "model.head = ..."
SPARSE = re.compile("Sparse(Csr)?(sim|TensorImpl)")
NOT_BUILT_IN = re.compile(
    "not compiled with CUDA|no NVIDIA driver|not linked with support|cudnn.*not"
)


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """The error, the error that caused it, and so on.

    A script may link its errors in a circle, so no error comes twice.
    """
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def text(error: BaseException) -> str:
    """The error's message in CUDA's words; "" if the error's own code fails."""
    try:
        return in_cuda_words(format(str(error), f".{MOST_CHARACTERS}"))
    except BaseException:
        return ""


def is_of_devices(error: BaseException) -> bool:
    is_torch = isinstance(error, RuntimeError | TypeError | ValueError)
    return is_torch and bool(OF_DEVICES.search(text(error)) or mixes_sparse(error))


def mixes_sparse(error: BaseException) -> bool:
    """Whether a sparse tensor on the CPU met a tensor on the device."""
    places = {tensor.is_cpu for tensor in getattr(error, ARGUMENTS, [])}
    return bool(SPARSE.search(text(error))) and len(places) == 2


def lost_leaf(error: BaseException, origins: Origins) -> Line | None:
    """The line that copied a leaf tensor from the CPU to the device, or None.

    Autograd keeps gradients only for leaves, and the copy is no leaf.
    """
    if not (isinstance(error, Exception) and WITHOUT_LEAF.search(text(error))):
        return None
    lines = [line for line, _ in frames_of(error, origins)]
    if not lines or not ("grad" in lines[-1].code or isinstance(error, ValueError)):
        return None
    for origin in origins:
        copy = origin.tensor()
        before: Any = getattr(getattr(copy, "grad_fn", None), "next_functions", ())
        leaf = getattr(before[0][0], "variable", None) if len(before) == 1 else None
        if leaf is not None and leaf.is_cpu and not copy.is_cpu:
            return origin.makers[0][0] if origin.makers else origin.line
    return None


def what_is_missing(error: BaseException) -> str:
    """A sentence on what can't be simulated; "" for any other error."""
    said = text(error).rstrip(".")
    if isinstance(error, cuda.CannotSimulateError):
        return f"A dry run can't simulate {said}."
    if SPARSE.search(said) and not mixes_sparse(error):
        return "A dry run can't simulate sparse tensors on the GPU."
    needs = f"The script needs something that a dry run doesn't have: {said}."
    return needs if NOT_BUILT_IN.search(said) else ""


def explain(error: BaseException, origins: Origins) -> Failure:
    frames = list(frames_of(error, origins))
    line, frame = frames[-1] if frames else (None, None)
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        line = Line(error.filename, error.lineno)
    message = text(error)
    if mixes_sparse(error):
        message = "a sparse tensor on cpu met a tensor on cuda:0"
    tensors: list[Tensor] = getattr(error, ARGUMENTS, [])
    arguments = tuple(argument(t, frame, origins) for t in tensors)
    culprit = line
    why = next((why for said, why in REASONS.items() if said in message), "")
    if "DataLoader worker" in message:
        for file, number in IN_WORKER.findall(message):
            if origins.script.owns(file):
                culprit = Line(file, int(number))
        message = message.strip().splitlines()[-1].partition(": ")[2]
    if leaf := lost_leaf(error, origins):
        culprit, why = leaf, words("why.leaf")
    elif "for generator" in message:
        culprit = line_of_loader(error, origins) or line
    elif "CPU int64 tensor" in message and (made := origins.of(tensors[-1])):
        culprit = made.line
    elif NOT_BUILT_IN.search(message) and line:
        earlier = [Line(line.file, number) for number in range(line.number, 0, -1)]
        culprit = next((each for each in earlier if "cuda" in each.code), line)
        why = words("why.not_built_in")
    elif not why and len({tensor.is_cpu for tensor in tensors}) == 2 and line:
        hosts = [tensor for tensor in tensors if tensor.is_cpu]
        host = max(hosts, key=lambda tensor: tensor.dim() > 0)
        culprit, why = line_to_change(host, line, frames, origins)
        for inner, _ in traceback.walk_tb(error.__traceback__):
            optimizer = inner.f_locals.get("self")
            if inner.f_code.co_name == "update_bn":
                culprit, why = line, words("why.update_bn")
            elif isinstance(optimizer, Optimizer):
                culprit = origins.line_of(optimizer, "load_state_dict") or culprit
                why = words("why.optimizer")
    return Failure(type(error).__name__, message, line, arguments, culprit, why)


def frames_of(
    error: BaseException, origins: Origins
) -> Iterator[tuple[Line, FrameType]]:
    """The script's lines in the traceback, the innermost last."""
    return origins.script.lines(traceback.walk_tb(error.__traceback__))


def line_of_loader(error: BaseException, origins: Origins) -> Line | None:
    """The line that made the loader whose sampler failed."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if line := origins.line_of(frame.f_locals.get("self"), "__init__"):
            return line
    return None


def argument(tensor: Tensor, frame: FrameType | None, origins: Origins) -> Argument:
    origin = origins.of(tensor)
    name, device = name_in(frame, tensor), str(tensor.device)
    line = origin.line if origin else None
    return Argument(name, device, tuple(tensor.shape), line)


def name_in(frame: FrameType | None, tensor: Tensor) -> str:
    """The name of the variable, or of the module's parameter, that is this tensor."""
    if frame is None:
        return ""
    if names := variables(frame, tensor):
        return names[0]
    for name, value in {**frame.f_globals, **frame.f_locals}.items():
        if isinstance(value, nn.Module):
            for key, parameter in value.named_parameters(name):
                if parameter is tensor:
                    return key
        for key in attributes(value, tensor):
            return f"{name}.{key}"
    return ""


def line_to_change(
    tensor: Tensor, line: Line, frames: Frames, origins: Origins
) -> tuple[Line, str]:
    """The line that should have moved this tensor from the CPU, and why."""
    origin = forgotten(origins.of(tensor), line)
    if origin is None:
        return line, words("why.unknown")
    if is_moved(origin.source):
        return origin.line, words("why.moved_later")
    for at, copy in reversed([*origin.copies, *(origin.source or origin).copies]):
        if copy() is None and is_dropped(at):
            return at, words("why.lost_copy")
    is_single = origin.copies or origin.makers or origin.is_of_loop
    mover = None if is_single else origins.movers.get(origin.line)
    if mover and any(
        mover.file == at.file and mover.number in assigned(at, frame, origin.tensor())
        for at, frame in frames
    ):
        return mover, words("why.several", line=origin.line.number)
    return left_out(tensor, frames, origins) or place(origin, frames)


def left_out(
    tensor: Tensor, frames: Frames, origins: Origins
) -> tuple[Line, str] | None:
    """The line to change, and why, if a batch's own `to` doesn't move this tensor.

    The script defines the batch's class. The line is the first one of `to` that has
    the name of the tensor's attribute, or else the line where `to` begins.
    """
    for _, frame in frames:
        for value in frame.f_locals.values():
            names = attributes(value, tensor)
            code = getattr(getattr(type(value), "to", None), "__code__", None)
            if names and code and origins.script.owns(code.co_filename):
                lines = inspect.getsourcelines(code)[0]
                after = next((i for i, part in enumerate(lines) if names[0] in part), 0)
                line = Line(code.co_filename, code.co_firstlineno + after)
                return line, words("why.left_out", name=names[0])
    return None


def forgotten(origin: Origin | None, line: Line) -> Origin | None:
    """The tensor that should have been moved: this one, or one it was computed from.

    The search goes back from this tensor, which failed at `line`. It ends at a tensor
    that was copied to the device, or computed from a parameter on the device. It also
    ends at a tensor that another line computed or that a model's constructor made. If
    so, the latest tensor that a constructor made is returned, if there is one.
    """
    chain = list(origin.chain()) if origin else []
    built = [o for o in chain if o.makers and not isinstance(o.tensor(), nn.Parameter)]
    for each in chain:
        if each.copies or is_moved(each.source):
            return each
        if each in built or (each.line != line and not each.is_same):
            return (built or [each])[0]
    return chain[-1] if chain else None


def is_moved(origin: Origin | None) -> bool:
    """Whether this tensor is a parameter that has been moved to the device."""
    tensor = origin and origin.tensor()
    return isinstance(tensor, nn.Parameter) and not tensor.is_cpu


def unpacked(tensor: Any, loop: Line, frames: Frames) -> tuple[Line, str]:
    """The line that took a tensor out of its batch, and the tensor's name there.

    Looks in the outermost function that has the tensor. If no assignment took it out,
    the line is the loop's own.
    """
    for line, frame in frames:
        if names := variables(frame, tensor):
            is_here = loop.file == line.file and loop.number < line.number
            numbers = assigned(line, frame, tensor)
            numbers = [n for n in numbers if n >= loop.number or not is_here]
            return (Line(line.file, max(numbers)) if numbers else loop), names[0]
    return loop, "the batch"


def variables(frame: FrameType, tensor: Any) -> list[str]:
    """The names of a function's variables, also global ones, that are this tensor.

    For None, which stands for a tensor that no longer exists, there are no names.
    """
    scope = {**frame.f_globals, **frame.f_locals} if tensor is not None else {}
    return [name for name, value in scope.items() if value is tensor]


def attributes(holder: Any, tensor: Any) -> list[str]:
    """The names of the attributes of an object that are this tensor."""
    return [k for k, it in getattr(holder, "__dict__", {}).items() if it is tensor]


def assigned(line: Line, frame: FrameType, tensor: Any) -> list[int]:
    """The numbers of the function's lines above `line` that assign the tensor."""
    earlier = range(frame.f_code.co_firstlineno, line.number)
    names = variables(frame, tensor)
    return [number for number in assignments(line.file, names) if number in earlier]


def assignments(file: str, names: Collection[str]) -> list[int]:
    """The numbers of the lines that assign to variables or attributes."""
    tree = ast.parse("".join(linecache.getlines(file)))
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for part in ast.walk(node.targets[0])
        if ast.unparse(part) in names
    ]


def is_dropped(line: Line) -> bool:
    """Whether a line calls `.to()` or `.cuda()` and uses the result no further.

    A line that assigns the result, or puts it into a list or tuple, counts too.
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


def place(origin: Origin, frames: Frames) -> tuple[Line, str]:
    made, line = origin.tensor(), origin.line
    is_parameter = isinstance(made, nn.Parameter)
    for at, maker in origin.makers:
        module = maker()
        registered = [*module.parameters(), *module.buffers()] if module else [made]
        if not any(made is each for each in registered):
            names = [f"self.{key}" for key in attributes(module, made)]
            lines = [n for n in assignments(at.file, names) if n >= at.number]
            why = words("why.layers") if is_parameter else words("why.buffer")
            return Line(at.file, min(lines, default=at.number)), why
    if origin.makers or is_parameter:
        running = {id(frame) for _, frame in frames}
        for caller, function in origin.callers:
            if function in running or ATTRIBUTE.match(line.code):
                break
            line = caller
        return line, words("why.model")
    if origin.is_of_loop:
        line, name = unpacked(made, line, frames)
        return line, words("why.batch", name=name)
    return line, words("why.computed") if origin.source else words("why.made")
