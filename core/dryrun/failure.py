"""An error of the script: whether devices caused it, and which line has to change."""

import ast
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

Frames = Sequence[tuple[Line, FrameType]]  # the outermost first
ARGUMENTS = "_arguments"  # an error's attribute: the tensors that the call was given
MOST_CHARACTERS = 10_000  # longer messages are cut
OF_DEVICES = re.compile(
    "same device|Input type|can't convert .* device|device type for generator"
    "|invalid device ordinal|out of memory|in forked subprocess|cannot pin"
    "|indices should be either on|on device|is on (cpu|cuda)|deserialize object on"
    "|must be on|CPU int64 tensor|cpu and cuda|cuda.* and cpu"
)
WITHOUT_LEAF = re.compile("non-leaf Tensor|empty parameter list|'NoneType'")
IN_WORKER = re.compile(r'File "(.+)", line (\d+)')
ATTRIBUTE = re.compile(r"[\w.]+\.\w+ *=")  # such as model.head = ...
SPARSE = re.compile("Sparse(Csr)?(sim|TensorImpl)")
NOT_BUILT_IN = re.compile(
    "not compiled with CUDA|no NVIDIA driver|not linked with support|cudnn.*not"
)


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """The error, and those that it was raised from, which may go in a circle."""
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
    """The line that moved a leaf, so that the copy isn't a leaf and has no gradient."""
    if not (isinstance(error, Exception) and WITHOUT_LEAF.search(text(error))):
        return None
    line = next((line for line, _ in reversed([*frames_of(error, origins)])), None)
    if line and ("grad" in line.code or isinstance(error, ValueError)):
        leaves = origins.moved_leaves.items()
        return next((at for at, copy in leaves if copy() is not None), None)
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
    culprit, why = line, ""
    hosts = [t for t in tensors if t.is_cpu]
    hosts = [t for t in hosts if t.dim()] or hosts
    if "DataLoader worker" in message:
        for file, number in IN_WORKER.findall(message):
            if origins.script.owns(file):
                culprit = Line(file, int(number))
        message = message.strip().splitlines()[-1].partition(": ")[2]
    if leaf := lost_leaf(error, origins):
        culprit = leaf
        why = "this line makes a copy, and only the original gets a gradient"
    elif "forked" in message:
        why = "a worker process can't use the GPU, so move the batch in the loop"
    elif "out of memory" in message:
        why = "the memory was full at this point"
    elif hosts and len(hosts) < len(tensors) and line:
        culprit, why = line_to_change(hosts[0], line, frames, origins)
        stack = traceback.walk_tb(error.__traceback__)
        for frame, _ in stack:
            if frame.f_code.co_name == "update_bn":
                culprit, why = line, "add device=, so that update_bn moves its batches"
            elif isinstance(optimizer := frame.f_locals.get("self"), Optimizer):
                culprit = origins.loaded_states.get(id(optimizer), culprit)
                why = (
                    "the optimizer has this tensor on the CPU: move the model before "
                    "you build the optimizer or load its state"
                )
    elif "for generator" in message:
        culprit = line_of_loader(error, origins) or line
        why = "the generator is on another device"
    elif "CPU int64 tensor" in message and (at := origins.of(tensors[-1])):
        culprit, why = at.line, "the lengths have to stay on the CPU"
    elif "can't convert" in message:
        why = "move the tensor to the CPU first, with .cpu()"
        for name, value in frame.f_locals.items() if frame else ():
            if isinstance(value, list) and any(v is t for v in value for t in tensors):
                why = f"move its tensors to the CPU first: torch.stack({name}).cpu()"
    elif "deserialize object" in message:
        why = "add map_location, so that the file can be loaded on any machine"
    elif NOT_BUILT_IN.search(message) and line:
        earlier = [Line(line.file, number) for number in range(line.number, 0, -1)]
        culprit = next((each for each in earlier if "cuda" in each.code), line)
        why = "this asks for CUDA, even on a machine without a GPU"
    return Failure(type(error).__name__, message, line, arguments, culprit, why)


def frames_of(
    error: BaseException, origins: Origins
) -> Iterator[tuple[Line, FrameType]]:
    """The script's lines in the traceback, the innermost last."""
    for frame, number in traceback.walk_tb(error.__traceback__):
        if origins.script.owns(frame.f_code.co_filename):
            yield Line(frame.f_code.co_filename, number), frame


def line_of_loader(error: BaseException, origins: Origins) -> Line | None:
    """The line that made the loader whose sampler failed."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        for each, line in origins.loaders:
            if frame.f_locals.get("self") is each:
                return line
    return None


def argument(tensor: Tensor, frame: FrameType | None, origins: Origins) -> Argument:
    origin = origins.of(tensor)
    name, device = name_in(frame, tensor), str(tensor.device)
    line = origin.line if origin else None
    return Argument(name, device, tuple(tensor.shape), line)


def name_in(frame: FrameType | None, tensor: Tensor) -> str:
    """The name of the variable, or of the module's parameter, that is this tensor."""
    variables: dict[str, Any] = {**frame.f_globals, **frame.f_locals} if frame else {}
    for name, value in variables.items():
        if value is tensor:
            return name
    for name, value in variables.items():
        if isinstance(value, nn.Module):
            for key, parameter in value.named_parameters(name):
                if parameter is tensor:
                    return key
        for key, attribute in getattr(value, "__dict__", {}).items():
            if attribute is tensor:
                return f"{name}.{key}"
    return ""


def line_to_change(
    tensor: Tensor, line: Line, frames: Frames, origins: Origins
) -> tuple[Line, str]:
    """The line that should have moved this tensor from the CPU, and why."""
    origin = origins.of(tensor)
    while origin and origin.source and not origin.copies:
        if origin.makers and not isinstance(origin.tensor(), nn.Parameter):
            break
        original = origin.source.tensor()
        if isinstance(original, nn.Parameter) and not original.is_cpu:
            return origin.line, (
                "this line used a parameter before the model was moved: move the model "
                "first"
            )
        if origin.line != line and not origin.is_same:
            origin = factory(origin)
            break
        origin = origin.source
    if origin is None:
        return line, "this line uses a tensor on the CPU"
    for at, copy in reversed([*origin.copies, *(origin.source or origin).copies]):
        if copy() is None and is_dropped(at):
            return at, "this copy on the device is lost unless you assign it to a name"
    is_single = origin.copies or origin.makers or origin.line.code.startswith("for ")
    mover = None if is_single else origins.movers.get(origin.line)
    if mover and takes(mover, origin.tensor(), frames):
        return mover, (
            f"line {origin.line.number} makes several tensors, and this line doesn't "
            "move all of them"
        )
    return place(origin, frames)


def takes(earlier: Line, tensor: Tensor | None, frames: Frames) -> bool:
    """Whether a line, in one of the calls that run, assigned the tensor to a name."""
    for line, frame in frames:
        first = frame.f_code.co_firstlineno
        is_before = line.file == earlier.file and first <= earlier.number < line.number
        names = variables(frame, tensor) if is_before else []
        if names and earlier.number in assignments(line.file, names):
            return True
    return False


def factory(origin: Origin) -> Origin:
    """Where a model made the tensor from which this one was computed.

    A model makes tensors in its constructor, or in the method that computes this one.
    If neither made such a tensor, returns the given origin.
    """
    made: Origin | None = origin
    while made and not made.makers:
        made = made.source
    if made and not isinstance(made.tensor(), nn.Parameter):
        return made
    first = origin
    while first.source and not first.line.code.startswith("for "):
        if first.method is None or first.method is not first.source.method:
            break
        first = first.source
    return origin if first.source or first.makers else first


def unpacked(tensor: Any, loop: Line, frames: Frames) -> tuple[Line, str]:
    """The line that took a tensor out of its batch, and the tensor's name there.

    Looks in the outermost function that has the tensor. If no assignment took it out,
    the line is the loop's own.
    """
    for line, frame in frames:
        if names := variables(frame, tensor):
            first = frame.f_code.co_firstlineno
            if loop.file == line.file and first <= loop.number < line.number:
                first = loop.number
            earlier = range(first, line.number)
            lines = [n for n in assignments(line.file, names) if n in earlier]
            return (Line(line.file, max(lines)) if lines else loop), names[0]
    return loop, "the batch"


def variables(frame: FrameType, tensor: Any) -> list[str]:
    """The names of a function's variables that are this tensor."""
    return [name for name, value in frame.f_locals.items() if value is tensor]


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
    """Whether a line calls `.to()` or `.cuda()` outside of any larger expression."""
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
            names = {f"self.{key}" for key, it in vars(module).items() if it is made}
            lines = [n for n in assignments(at.file, names) if n >= at.number]
            how = "self.register_buffer, or nn.Parameter if it is trained"
            if is_parameter:
                how = "nn.ModuleList for layers, nn.ParameterList for parameters"
            return Line(at.file, min(lines, default=at.number)), (
                "this isn't registered with the model, so it doesn't move with it: use "
                + how
            )
    if origin.makers or is_parameter:
        running = {id(frame) for _, frame in frames}
        for caller, function in origin.callers:
            if function in running or ATTRIBUTE.match(line.code):
                break
            line = caller
        return line, "this model was never moved: add .to(device)"
    if line.code.startswith("for "):
        line, name = unpacked(made, line, frames)
        return line, (
            f"after this line, {name} is still on the CPU: move it with .to(device)"
        )
    if origin.source is None:
        return line, "this line makes a tensor on the CPU: add device= or .to(device)"
    return line, "this tensor was made on the CPU and never moved: add .to(device)"
