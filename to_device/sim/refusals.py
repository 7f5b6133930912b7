"""What the simulated device refuses, in CUDA's words.

On CUDA, three places refuse a tensor that is on another device:
TensorIterator, which most elementwise operations go through ("found at least
two devices"); a check that PyTorch's code generator writes before every other
operation ("got mat1 is on cpu, different from other tensors on cuda:0"); and
some operations themselves. The first two are here, and so are some of the
third kind. native_functions.yaml, which comes with torch, tells which of the
first two an operation has.
"""

import os
import re
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from to_device.names import SIMULATED

# These operations take indices, which may be on the CPU.
INDEXES = ("index", "index_put", "index_put_", "_index_put_impl_")
# These operations accept tensors on two devices.
COPIES = ("_foreach_copy_", "fill_", "bernoulli")
# Operations, and CUDA's kernels for them, which refuse integers, unlike the CPU's.
FLOATING = {"mm": "addmm_cuda", "addmm": "addmm_cuda", "bmm": "baddbmm_cuda"}
FLOATING |= {"baddbmm": "baddbmm_cuda", "addmv_": "addmv_impl_cuda", "dot": "dot"}
process = 0  # the id of the process that has the device
SAME_DEVICE = "Expected all tensors to be on the same device, but "
TWO_DEVICES = f"{SAME_DEVICE}found at least two devices, {SIMULATED}:0 and cpu!"


def check_process() -> None:
    """Raise RuntimeError in a fork of the process that has the device."""
    if os.getpid() != process:
        raise RuntimeError(
            "Cannot re-initialize SIM in forked subprocess. To use SIM with "
            "multiprocessing, you must use the 'spawn' start method"
        )


def check_device(device: Any) -> None:
    """Raise AcceleratorError for a device number above 0; only 0 exists."""
    number = device if isinstance(device, int) else torch.device(device).index or 0
    if number > 0:
        raise torch.AcceleratorError(
            "SIM error: invalid device ordinal\n"
            "GPU device may be out of range, do you have enough GPUs?"
        )


def check_same_device(op: Any, args: Any, kwargs: Any, strangers: list[Tensor]) -> None:
    """Raise RuntimeError if the operation refuses one of its CPU tensors, `strangers`.

    Elementwise operations accept a CPU tensor without dimensions, since it is
    a number. Indices may be on the CPU. If the indices are on the device, a
    CPU tensor may be written (`x[indices] = y`), but not read (`x[indices]`).
    """
    schema = op._schema
    name, overload = schema.name.removeprefix("aten::"), schema.overload_name
    if name in COPIES:
        return
    if name == "index" and args[0].is_cpu:
        raise RuntimeError(
            "indices should be either on cpu or on the same device as the indexed "
            "tensor (cpu)"
        )
    if name in INDEXES:
        strangers = [value for value in args[2:3] if value.device != args[0].device]
    if name.startswith("masked_fill") and args[0].device != args[1].device:
        raise RuntimeError(
            "expected self and mask to be on the same device, but got mask on "
            f"{args[1].device} and self on {args[0].device}"
        )
    if name == "convolution" and not args[0].is_cpu:
        for kind, parameter in zip(("weight", "bias"), args[1:3], strict=True):
            if parameter is not None and parameter.device != args[0].device:
                raise RuntimeError(
                    f"Input type ({args[0].type()}) and {kind} type "
                    f"({parameter.type()}) should be the same"
                )
    entry = entries().get(op.name(), "")
    if name in INDEXES or "device_check: NoCheck" in entry:
        if any(x.dim() or (schema.is_mutable and x is args[0]) for x in strangers):
            raise RuntimeError(TWO_DEVICES)
        return
    if name == "native_batch_norm" and args[5] and not args[0].is_cpu:  # in training
        name = "cudnn_batch_norm"
    given = dict(zip([a.name for a in schema.arguments], args, strict=False)) | kwargs
    outputs = [a.name for a in schema.arguments if a.kwarg_only and a.alias_info]
    # torchgen names the operation's function on CUDA in this way.
    function = f"{name}_out" if outputs else name
    wrapper = f"{overload}_{function}"
    if "structured: True" in entry or "structured_delegate" in entry:
        wrapper = f"{function}_{overload}" if overload else function
    first = None
    for argument in sorted(given, key=lambda name: name not in outputs):
        for tensor in filter(torch.is_tensor, tree_leaves(given[argument])):
            first = first or tensor.device
            if tensor.device != first:
                raise RuntimeError(
                    f"{SAME_DEVICE}got {argument} is on {tensor.device}, different "
                    f"from other tensors on {first} (when checking argument in method "
                    f"wrapper_SIM_{wrapper})"
                )


def check_type(kernel: str, tensor: Tensor) -> None:
    if not (tensor.is_floating_point() or tensor.is_complex()):
        kind = tensor.type().split(".")[-1].removesuffix("Tensor")
        raise NotImplementedError(f'"{kernel}" not implemented for {kind!r}')


@cache
def entries() -> dict[str, str]:
    """The entry of each operation in native_functions.yaml, which comes with torch."""
    import torchgen

    folder = Path(torchgen.__file__).parent / "packaged" / "ATen" / "native"
    text = (folder / "native_functions.yaml").read_text("utf-8")
    parts = re.split(r"(?m)^- func: ", text)[1:]
    return {"aten::" + part.partition("(")[0]: part for part in parts}
