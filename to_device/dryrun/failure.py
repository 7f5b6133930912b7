"""An error of the script: whether devices caused it, and what a report says of it."""

import dis
import os
import re
import traceback
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import debug_unwrap
from torch.nn.utils.rnn import PackedSequence
from torch.optim import Optimizer
from torch.utils._pytree import tree_leaves
from torch.utils.data.dataloader import _BaseDataLoaderIter

from to_device.dryrun import cuda
from to_device.dryrun.culprit import (
    attributes,
    line_for_numpy,
    line_to_change,
    unregistering,
    variables,
)
from to_device.dryrun.model_moves import moved_back
from to_device.dryrun.origins import Origin, Origins
from to_device.dryrun.ranges import line_of_range
from to_device.dryrun.report import Argument, Failure
from to_device.dryrun.script import OURS, Line
from to_device.sim.simulation import in_cuda_words
from to_device.sim.sizes import NeedsValuesError
from to_device.words import Words

words = Words(__file__)
# An error gets an attribute of this name: the tensors and generators that the failed
# call was given.
ARGUMENTS = "_arguments"
MOST_CHARACTERS = 10_000  # longer messages are cut
MOST_ARGUMENTS = 4  # tensors on the same device that a report tells
OF_DEVICES = re.compile(
    "same device|Input type|can't convert .* device|device type for generator"
    "|out of memory|in forked subprocess|cannot pin"
    "|indices should be either on|on device|is on (cpu|cuda)|deserialize object on"
    "|must be on|CPU int64 tensor|cpu and cuda|cuda.* and cpu|RNG state must be"
    r"|expected device \S+ but got|to be on (cpu|cuda)"
    r"|device=cpu.*\(got .*device=cuda|device=cuda.*\(got .*device=cpu"
    r"|was torch\.cuda\S+ got torch\.(?!cuda)|was torch\.(?!cuda)\S+ got torch\.cuda"
    "|No backend type associated with device type cpu"
    '|unsafe to autocast|(_cuda|dot)" not implemented'
)
WITHOUT_LEAF = re.compile("non-leaf Tensor|empty parameter list|'NoneType'")
REASONS: dict[str, str] = words.table("reasons")  # by a part of an error's message
IN_WORKER = re.compile(r'File "([^"\n]+)", line (\d+)')
SPARSE = re.compile("Sparse(Csr)?(sim|TensorImpl)|sparse (row|column) compressed")
# current_accelerator() without check_available=True returns the device that torch was
# built for, even on a machine without this device.
CHOOSES_CUDA = re.compile(r"cuda|current_accelerator\(\)")
NO_SUCH_GPU = "invalid device ordinal"  # for a number of a device, such as 1
# What PyTorch says where its C++ or a library's kernels meet the spare device.
NO_KERNEL = re.compile(
    "Could not run .* with arguments from the '.*(sim|cuda|PrivateUse1)'|Triton|DLPack"
    "|__cuda_array_interface__|[Uu]nsupported device.*(sim|cuda)|device.*PrivateUse1"
)
# Python's instructions for indices, attributes, names, and unpacking. A newer Python
# has the index among the operators.
MISTAKES = re.compile(r"(BINARY|STORE)_(SUBSCR|SLICE)|BINARY_OP.*\[|LOAD_|UNPACK_")
NOT_BUILT_IN = re.compile(
    "not compiled with CUDA|no NVIDIA driver|not linked with support|cudnn.*not"
)


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """The error, the error that caused it, and so on.

    A script may link its errors in a circle, so no error comes twice.
    """
    ids = set()
    while error is not None and id(error) not in ids:
        ids.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def text(error: BaseException) -> str:
    """The error's message in CUDA's words; "" if its `__str__` raises an error."""
    try:
        return in_cuda_words(format(str(error), f".{MOST_CHARACTERS}"))
    except BaseException:
        return ""


def attach(error: Exception, arguments: Iterable[Any]) -> None:
    """Word an error as CUDA does; keep the call's tensors and generators with it."""
    error.args = tuple(
        in_cuda_words(part) if isinstance(part, str) else part for part in error.args
    )
    kept = [a for a in arguments if isinstance(a, Tensor | torch._C.Generator)]
    error.__dict__.setdefault(ARGUMENTS, kept)


def given(error: BaseException, kind: type) -> list[Any]:
    """What the failed call was given of a kind: the tensors, or the generators."""
    return [a for a in getattr(error, ARGUMENTS, []) if isinstance(a, kind)]


def is_of_devices(error: BaseException) -> bool:
    if isinstance(error, AttributeError) and error.name == "cuda":
        return True  # only code for CUDA asks a tuple, say, for this method
    is_torch = isinstance(error, RuntimeError | TypeError | ValueError)
    return is_torch and bool(OF_DEVICES.search(text(error)) or mixes_sparse(error))


def mixes_sparse(error: BaseException) -> bool:
    """Whether a sparse tensor on the CPU met a tensor on the device."""
    places = {tensor.is_cpu for tensor in given(error, Tensor)}
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
            return origin.makers[0].line if origin.makers else origin.line
    return None


def own_line(error: BaseException) -> str:
    """The line of the dry run itself that raised an error by mistake; "" for others.

    What the dry run calls or iterates over for the script may fail for the script's
    reasons, and it raises CUDA's errors on purpose. But an index that doesn't exist,
    say, or a name, is its own mistake.
    """
    entry = error.__traceback__
    while entry and entry.tb_next:
        entry = entry.tb_next
    code = entry and entry.tb_frame.f_code
    if entry is None or not code or not code.co_filename.startswith(OURS + os.sep):
        return ""
    failed = [i for i in dis.get_instructions(code) if i.offset == entry.tb_lasti]
    is_mistake = any(MISTAKES.match(f"{i.opname} {i.argrepr}") for i in failed)
    file = Path(code.co_filename).relative_to(Path(OURS).parent).as_posix()
    return f"{file}:{entry.tb_lineno}" if is_mistake else ""


def missing_feature(error: BaseException) -> str:
    """A sentence on what can't be simulated; "" for any other error."""
    message = text(error).rstrip(".")
    if isinstance(error, cuda.CannotSimulateError):
        return f"A dry run can't simulate {message}."
    if isinstance(error, NeedsValuesError):
        return f"What the script does next depends on {message}."
    if isinstance(error, torch.AcceleratorError) and NO_SUCH_GPU in message:
        return "A dry run can't simulate a second GPU."
    if SPARSE.search(message) and not mixes_sparse(error):
        return "A dry run can't simulate sparse tensors on the GPU."
    needs = f"The script needs something that a dry run doesn't have: {message}."
    if NOT_BUILT_IN.search(message):
        return needs
    return needs if NO_KERNEL.search(message) and not mixes_sparse(error) else ""


def explain(error: BaseException, origins: Origins) -> Failure:
    frames = list(frames_of(error, origins))
    line, frame = frames[-1] if frames else (None, None)
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        line = Line(error.filename, error.lineno)
    message = text(error)
    if mixes_sparse(error):
        message = "a sparse tensor on cpu met a tensor on cuda:0"
    # torch.func.vmap wraps tensors.
    tensors = [debug_unwrap(tensor) for tensor in given(error, Tensor)]

    arguments: list[Argument] = []
    for tensor in tensors:
        alike = [a for a in arguments if a.device == str(tensor.device)]
        if len(alike) == MOST_ARGUMENTS:  # a layer's call may have a dozen parameters
            continue
        origin, name = origins.of(tensor), name_in(frame, tensor)
        maker = unregistering(origin) if origin and tensor.is_cpu else None
        at = maker.inner if maker else origin.line if origin else None
        shape = tuple(tensor.shape)
        arguments.append(Argument(name, str(tensor.device), shape, at))
    culprit = line
    why = next((why for part, why in REASONS.items() if part in message), "")
    if "DataLoader worker" in message:
        culprit = line_for_workers(error, origins) or line
        for file, number in IN_WORKER.findall(message):
            if origins.script.owns(file):
                culprit = Line(file, int(number))
        message = message.strip().splitlines()[-1].partition(": ")[2]
    if leaf := lost_leaf(error, origins):
        culprit, why = (
            leaf,
            "this line makes a copy, and only the original gets a gradient",
        )
    elif "for generator" in message:
        culprit = generator_line(error, origins) or culprit
    elif "CPU int64 tensor" in message and (origin := origins.of(tensors[-1])):
        culprit = origin.line
    elif NOT_BUILT_IN.search(message) and line:
        earlier = [Line(line.file, number) for number in range(line.number, 0, -1)]
        chosen = (place for place in earlier if CHOOSES_CUDA.search(place.code))
        culprit = next(chosen, line)
        why = "this chooses CUDA, even on a machine without a GPU"
    elif why and (origin := in_a_list(tensors, frame, origins)):
        culprit = origin.line
    elif found := line_of_range(message, tensors, frames, origins):
        culprit, why = found
    elif "to numpy" in message and line and (made := line_for_numpy(line, frames)):
        culprit = made
    elif not why and len({tensor.is_cpu for tensor in tensors}) == 2 and line:
        held = [value for _, f in frames for value in f.f_locals.values()]
        lengths = [v.batch_sizes for v in held if isinstance(v, PackedSequence)]
        cpu = [tensor for tensor in tensors if tensor.is_cpu]
        # The lengths of a packed sequence always stay on the CPU.
        hosts = [c for c in cpu if not any(c is length for length in lengths)] or cpu
        back = [tensor for tensor in hosts if moved_back(origins.of(tensor))]
        host = max(back or hosts, key=lambda tensor: tensor.dim() > 0)
        others = [tensor for tensor in tensors if not tensor.is_cpu]
        culprit, why = line_to_change(host, line, frames, origins, others)
        for inner, _ in traceback.walk_tb(error.__traceback__):
            optimizer = inner.f_locals.get("self")
            if inner.f_code.co_name == "update_bn":
                culprit, why = line, "add device=, so that update_bn moves its batches"
            elif isinstance(optimizer, Optimizer):
                culprit = origins.line_of(optimizer, "load_state_dict") or culprit
                why = words("why.optimizer")
    return Failure(type(error).__name__, message, line, tuple(arguments), culprit, why)


def in_a_list(
    tensors: Sequence[Tensor], frame: FrameType | None, origins: Origins
) -> Origin | None:
    """The origin of the one tensor that a call was given in a list, if it's so.

    What a list is for is decided where the tensor is put into it.
    """
    if len(tensors) != 1 or frame is None:
        return None
    lists = (v for v in frame.f_locals.values() if isinstance(v, list | tuple))
    is_held = any(part is tensors[0] for parts in lists for part in parts)
    return origins.of(tensors[0]) if is_held else None


def line_for_workers(error: BaseException, origins: Origins) -> Line | None:
    """The line that made a data set's tensors on the device, or else the loader.

    A worker that only reads such tensors fails without a line of the script.
    """
    for frame, _ in traceback.walk_tb(error.__traceback__):
        batches = frame.f_locals.get("self")
        if "in forked subprocess" in text(error) and isinstance(
            batches, _BaseDataLoaderIter
        ):
            held = tree_leaves([batches._dataset, *vars_of(batches._dataset)])
            tensors = [t for t in held if isinstance(t, Tensor) and not t.is_cpu]
            made = (o.line for o in map(origins.of, tensors) if o)
            return next(made, None) or origins.loaders_line(batches)
    return None


def vars_of(dataset: Any) -> list[Any]:
    """What a data set, and the one that it is a part of, have as attributes."""
    held = list(getattr(dataset, "__dict__", {}).values())
    inner = getattr(dataset, "dataset", None)
    return [*held, *getattr(inner, "__dict__", {}).values()]


def generator_line(error: BaseException, origins: Origins) -> Line | None:
    """The line that made the failed call's generator, or the loader that uses it.

    A loader or a sampler whose caller gave it no generator makes its own.
    """
    for generator in given(error, torch._C.Generator):
        if line := origins.line_of(generator):
            return line
        for frame, _ in traceback.walk_tb(error.__traceback__):
            owner = frame.f_locals.get("self")
            held = getattr(owner, "__dict__", {})
            values = (*frame.f_locals.values(), *held.values())
            is_used = any(value is generator for value in values)
            if is_used and (line := origins.line_of(owner)):
                return line
    if given(error, torch._C.Generator):
        return None
    # A loader's worker sends an error without what the failed call was given.
    held = [
        value
        for data in origins.datasets
        for value in getattr(data, "__dict__", {}).values()
    ]
    lines = [
        origins.line_of(value)
        for value in held
        if isinstance(value, torch._C.Generator)
        and f"found '{value.device.type}'" in text(error)
    ]
    return lines[0] if len(lines) == 1 else None


def frames_of(
    error: BaseException, origins: Origins
) -> Iterator[tuple[Line, FrameType]]:
    """The script's lines in the traceback, the innermost last."""
    return origins.script.lines(traceback.walk_tb(error.__traceback__))


def name_in(frame: FrameType | None, tensor: Tensor) -> str:
    """The name of the variable, or of what a module holds, that is this tensor."""
    if frame is None:
        return ""
    if names := variables(frame, tensor):
        return names[0]
    for name, value in {**frame.f_globals, **frame.f_locals}.items():
        if isinstance(value, nn.Module):
            held = (*value.named_parameters(name), *value.named_buffers(name))
            for key, own in held:
                if own is tensor:
                    return key
        for key in attributes(value, tensor):
            return f"{name}.{key}"
    return ""
