"""What the simulated device does for each of PyTorch's operations.

Nearly all operations go through one function, the fallback: it checks that all
tensors are on the device, sees their memory as CPU tensors, runs the CPU's
kernel, and returns the results as tensors on the device. So the digits are the
CPU's. Operations that compute nothing (copies, sizes, pinned memory) have
other functions, and so have operations that PyTorch expects each backend to
provide.
"""

import re
import warnings
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch._library.utils import lookup_op
from torch.amp.autocast_mode import _cast

from to_device.names import SIMULATED
from to_device.sim import attention, generator, ledger, memory, queue, refusals, sizes
from to_device.sim.memory import CPU, aten, describe, to_device, to_host

KEY, AUTOCAST = "PrivateUse1", "AutocastPrivateUse1"
NUMBERS = int | float | complex
WAYS = {(True, False): ledger.TO_DEVICE, (False, True): ledger.TO_HOST}
# CUDA's driver buffers a non-blocking copy to the device of up to this many bytes, so
# the host doesn't wait, even if its memory isn't pinned.
STAGED = 64 << 10


# These operations make the host wait, since it can't go on without the result, its size
# or a check. Each has a function that returns the bytes of each number that the host
# fetches. The bytes are as in PyTorch's CUDA sources, and as measured on an H100.
FETCHES: dict[str, Callable[..., list[int]]] = {
    "item": lambda x: [x.element_size()],
    "equal": lambda x, y: [1] * (x is not y and x.shape == y.shape and x.numel() > 0),
    "nonzero": lambda _: [4],
    "masked_select": lambda *_: [4],
    "masked_fill_": lambda x, _, n: [x.element_size()] * getattr(n, "is_sim", 0),
    "unique": lambda *_, **__: [8],
    "bincount": lambda x, *_, **__: [x.element_size()] * 2,
    # The smallest and the largest number, unless the caller gives them.
    "histc": lambda x, _=0, min=0, max=0: [x.element_size()] * 2 * (min == max),
    # The sum, and whether all numbers are 0 or more.
    "repeat_interleave": lambda _, output_size=None: [8, 1] * (output_size is None),
    # Whether all standard deviations are 0 or more, which is checked twice.
    "normal": lambda _, std=1.0, **__: [1, 1] * isinstance(std, Tensor),
    "linalg": lambda *_, **__: [4, 1],  # an error code, and whether it means an error
    "linalg_lstsq": lambda *_, **__: [1],
    "_nested_tensor_from_mask_left_aligned": lambda *_: [1],
}
REASONS = {  # keyed by operation: a wait's reason, if not the operation's name
    "_local_scalar_dense": "item",
    **dict.fromkeys(("_unique2", "unique_dim", "unique_consecutive"), "unique"),
    **dict.fromkeys(("_linalg_svd", "_linalg_eigh", "linalg_pinv"), "linalg"),
}


def count_indexing(_: Tensor, indices: Any, values: Any = None, *options: Any) -> None:
    """Count copies of CPU indices and values, and waits for mask sizes.

    For `x[mask] = number`, CUDA needs neither a copy nor a wait.
    """
    used = [index for index in indices if index is not None]
    masks = [index for index in used if index.dtype in (torch.bool, torch.uint8)]
    if values is not None and values.is_cpu:
        if len(used) == len(masks) == 1 and masks[0].is_sim and not any(options):
            return
        used.append(values)
    for tensor in used:
        is_mask = any(tensor is mask for mask in masks)
        if tensor.is_cpu and is_mask:  # no wait: the mask's indices are pinned
            ledger.copy(ledger.TO_DEVICE, tensor.nonzero().nbytes)
        elif tensor.is_cpu:
            ledger.copy(ledger.TO_DEVICE, tensor.nbytes)
            ledger.wait("copy to device")
        elif is_mask:
            ledger.wait("nonzero")
            ledger.copy(ledger.TO_HOST, 4)


class Plan:
    """What the fallback has to know about an operation."""

    def __init__(self, op: Any) -> None:
        arguments = op._schema.arguments
        places = {argument.name: place for place, argument in enumerate(arguments)}
        self.name = op._schema.name.removeprefix("aten::")
        self.tensors = [i for i, a in enumerate(arguments) if str(a.type) == "Tensor"]
        self.generator = places.get("generator")
        self.floating = refusals.FLOATING.get(self.name)
        self.reason = REASONS.get(self.name, self.name)  # if the host waits
        self.fetches = FETCHES.get(self.reason)
        self.writes = op._schema.is_mutable
        # PyTorch counts the versions of each tensor that is written to, but leaves
        # those in a list to the kernel. CUDA's kernels count them for the operations
        # named here, and for no fused optimizer, as the CPU's kernels do.
        self.counts_versions = self.writes and self.name.startswith("_foreach_")
        self.takes_numbers = torch._C._should_allow_numbers_as_tensors(self.name)

    def number(self, value: Any, arguments: list[Any]) -> Any:
        """What the CPU's kernel takes in the place of a tensor for a Python number.

        A number doesn't change the dtype of the tensor beside it, even if this tensor
        has no dimensions, so it must not become a tensor of its own dtype.
        """
        if self.takes_numbers:
            return value
        tensor = next((x for x in arguments if isinstance(x, Tensor)), None)
        dtype = None if tensor is None else torch.result_type(tensor, value)
        return torch.tensor(value, dtype=dtype)


plan_of = cache(Plan)


class Hosts:
    """The CPU tensors of an operation, and the device tensors that they stand for."""

    def __init__(self) -> None:
        # Each pair is a tensor on the device and the CPU tensor in the same memory.
        self.pairs: list[tuple[Tensor, Tensor]] = []
        self.strangers: list[Tensor] = []  # arguments that are on the CPU

    def of(self, value: Any) -> Any:
        """The argument as the CPU's kernel takes it."""
        if isinstance(value, Tensor):
            if value.is_cpu:
                self.strangers.append(value)
                return value
            self.pairs.append((value, to_host(value)))
            return self.pairs[-1][1]
        if isinstance(value, list | tuple):
            return [self.of(part) for part in value]
        if isinstance(value, torch.device):
            refusals.check_device(value)
            return CPU
        return value

    def back(self, result: Any) -> Any:
        """The result on the device: an argument, a view of one, or a new tensor."""
        if isinstance(result, Tensor):
            for device, host in self.pairs:
                if host is result:
                    return device
            storage = result.untyped_storage()._cdata
            for device, host in self.pairs:
                if host.untyped_storage()._cdata == storage:
                    return memory.as_view(device, result)
            if result._is_zerotensor():  # autograd's zeros, which have no memory
                return to_device(torch.zeros(result.shape, dtype=result.dtype))
            return to_device(result.resolve_conj().resolve_neg())
        if isinstance(result, list | tuple):
            return type(result)(map(self.back, result))
        return result


def fallback(op: Any, *args: Any, **kwargs: Any) -> Any:
    """Run any operation that has no function of its own.

    No object that is made here may refer to itself, even through others. Otherwise, its
    tensors would keep their memory until Python's garbage collector runs.
    """
    no_autocast = torch._C._DisableAutocast()  # autocast would cast the CPU's tensors
    with torch._C.DisableTorchFunction(), no_autocast, torch.no_grad():
        refusals.check_process()
        plan, hosts = plan_of(op), Hosts()
        on_host = [hosts.of(value) for value in args]
        for place in plan.tensors:  # torch may hand us a number for a tensor
            if place < len(on_host) and isinstance(on_host[place], NUMBERS):
                on_host[place] = plan.number(on_host[place], on_host)
        named = {name: hosts.of(value) for name, value in kwargs.items()}
        if hosts.strangers:
            refusals.check_same_device(op, args, kwargs, hosts.strangers)
        if plan.generator is not None:
            generator.use(plan.generator, on_host, named)
        ledger.counts.operations[plan.name] += 1
        if plan.fetches:
            for size in plan.fetches(*args, **kwargs):
                ledger.wait(plan.reason)
                ledger.copy(ledger.TO_HOST, size)
        if plan.name in refusals.INDEXES:
            count_indexing(*args, **kwargs)
        try:
            if sizes.is_on:
                result = sizes.run(op, on_host, named)
            else:
                reads_host = bool(hosts.strangers)
                result = queue.run(op, on_host, named, reads_host=reads_host)
        except RuntimeError as error:
            if tried := re.search(r"tried to allocate (\d+) bytes", str(error)):
                memory.check_room(int(tried[1]))  # the device lacks room, too
            error.args = (str(error).replace("m1 and m2", "mat1 and mat2"),)
            raise
        if plan.floating:  # checked last: CUDA checks the shapes first
            refusals.check_type(plan.floating, on_host[-1])
        if plan.writes:
            for device, host in hosts.pairs:
                if device.shape != host.shape or device.stride() != host.stride():
                    memory.follow(device, host)  # a tensor for out= was too small
        if plan.counts_versions:
            torch.autograd.graph.increment_version(args[0])
        return hosts.back(result)


def copy(source: Tensor, target: Tensor, non_blocking: bool = False) -> Tensor:
    """Copy from, to, or within the device.

    The host waits for a copy from or to the host, unless the copy is non-blocking and
    either the host's side is pinned, or the copy is a small one to the device.
    """
    with torch._C.DisableTorchFunction(), torch.no_grad():
        refusals.check_process()
        if not source.numel():
            return target
        way = WAYS.get((source.is_cpu, target.is_cpu), ledger.WITHIN)
        # If the dtypes differ, the host converts, or in a non-blocking copy the device.
        sent = source if source.is_cpu == non_blocking else target
        size = source.numel() * sent.element_size()
        ledger.copy(way, size)
        source, there = (t if t.is_cpu else to_host(t) for t in (source, target))
        staged = non_blocking and way == ledger.TO_DEVICE and size <= STAGED
        if not sizes.replaces_copy(there, source):
            if staged and not source.is_pinned():
                # As CUDA's driver does, in memory of its own, which never overlaps
                # itself
                source = pin(source.contiguous())
            queue.put(partial(there.copy_, source))
        is_pinned = non_blocking and (source.is_pinned() or there.is_pinned())
        if way != ledger.WITHIN and not is_pinned:
            ledger.wait(f"copy {way}")
        return target


def to_copy(tensor: Tensor, *, non_blocking: bool = False, **options: Any) -> Tensor:
    """The copy that `.to` makes. A non-blocking copy to the host gets pinned memory."""
    with torch._C.DisableTorchFunction(), torch.no_grad():
        target = torch.empty_like(tensor, **options)
        if non_blocking and target.is_cpu:
            target = pin(target)
        return target.copy_(tensor, non_blocking)


def pin(tensor: Tensor, _: Any = None) -> Tensor:
    """A copy on the host that is marked as pinned; no memory is really locked."""
    if not tensor.is_cpu:
        raise RuntimeError(
            f"cannot pin '{tensor.type()}' only dense CPU tensors can be pinned"
        )
    with torch._C.DisableTorchFunction():
        size, stride = tensor.shape, tensor.stride()
        pinned = torch.empty_strided(size, stride, dtype=tensor.dtype, device=CPU)
        pinned.untyped_storage().pinned = True  # type: ignore[attr-defined]
        return pinned if sizes.replaces_copy(pinned, tensor) else pinned.copy_(tensor)


def is_pinned(tensor: Tensor, _: Any = None) -> bool:
    return hasattr(tensor.untyped_storage(), "pinned")


def left_aligned(padded: Tensor, mask: Tensor) -> bool:
    """Say that no mask makes a nested tensor, since the device has none.

    nn.TransformerEncoder asks this in evaluation, and then keeps the mask.
    """
    fallback(aten._nested_tensor_from_mask_left_aligned.default, padded, mask)
    return False


def lstm_cell(from_input: Tensor, from_hidden: Tensor, cell: Tensor, *biases: Tensor):
    gates = sum((bias for bias in biases if bias is not None), from_input + from_hidden)
    i, f, g, o = gates.chunk(4, 1)
    new = f.sigmoid() * cell + i.sigmoid() * g.tanh()
    return o.sigmoid() * new.tanh(), new, gates


def gru_cell(from_input: Tensor, from_hidden: Tensor, hidden: Tensor, *biases: Tensor):
    if biases and biases[0] is not None:
        from_input, from_hidden = from_input + biases[0], from_hidden + biases[1]
    r, z, n = from_input.chunk(3, 1)
    hr, hz, hn = from_hidden.chunk(3, 1)
    new = (n + (r + hr).sigmoid() * hn).tanh()
    return new + (z + hz).sigmoid() * (hidden - new), new


# These operations touch no memory, so the CPU's kernels work on the device's tensors.
DESCRIBE = (
    *("as_strided", "view", "_reshape_alias", "set_.source_Tensor"),
    *("set_.source_Storage", "set_.source_Storage_storage_offset"),
)
KERNELS = {
    **{name: partial(describe, lookup_op(f"aten::{name}")) for name in DESCRIBE},
    "_copy_from": copy,
    "_to_copy": to_copy,
    "convolution_overrideable": partial(fallback, aten.convolution.default),
    "_native_multi_head_attention": attention.attention,
    "_nested_tensor_from_mask_left_aligned": left_aligned,
    "_transformer_encoder_layer_fwd": attention.encoder_layer,
    "_fused_sdp_choice": lambda *_, **__: 0,  # attention by plain matrix products
    "record_stream": lambda *_: None,  # there is one stream
}
# These operations consist of smaller ones, which autograd records.
CELLS = {"_thnn_fused_lstm_cell": lstm_cell, "_thnn_fused_gru_cell": gru_cell}

# cuDNN's recurrent layers, which CUDA runs in float16 under autocast.
IN_FLOAT16 = "lstm.input lstm.data gru.input gru.data rnn_tanh.input rnn_relu.input"


def autocast_list(name: str) -> set[str]:
    """A list of operations in ATen/autocast_mode.h, which comes with torch."""
    header = Path(torch.__file__).parent / "include" / "ATen" / "autocast_mode.h"
    entries = header.read_text("utf-8").split(f"AT_FORALL_{name}(_)")[1]
    pairs = re.findall(r"_\((\w+)(?:, (\w+))?\)", entries.partition("\n\n")[0])
    return {".".join(filter(None, pair)) for pair in pairs}


def casting(op: Any, in_16_bits: set[str], in_the_widest: set[str]) -> Callable:
    """A function that casts its arguments as autocast does, then runs the operation.

    CUDA runs the operations of `in_16_bits` in autocast's 16-bit type, and
    those of `in_the_widest` in the widest type among the arguments. All others
    that CUDA registers for autocast run in float32:
    https://docs.pytorch.org/docs/stable/amp.html#autocast-op-reference
    """
    name = op.name().removeprefix("aten::")
    this_key = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, AUTOCAST))
    if name == "binary_cross_entropy":  # refused under autocast, as on CUDA
        return partial(op._op_dk, torch._C.DispatchKey.AutocastCUDA)

    def cast_and_run(*args: Any, **kwargs: Any) -> Any:
        dtype = torch.float16 if name in IN_FLOAT16.split() else torch.float32
        dtypes = {x.dtype for x in args if isinstance(x, Tensor)}
        if name in in_16_bits or (name in in_the_widest and dtype not in dtypes):
            dtype = torch.get_autocast_dtype(SIMULATED)
        with torch._C._ExcludeDispatchKeyGuard(this_key):
            return op(*_cast(args, SIMULATED, dtype), **_cast(kwargs, SIMULATED, dtype))

    return cast_and_run


LIBRARIES = torch.library.Library("_", "IMPL")  # all libraries of operations
ATEN = torch.library.Library("aten", "IMPL")  # PyTorch's own operations


def operations_of(key: str) -> list[Any]:
    """PyTorch's own operations that have a kernel for the dispatch key."""
    names = torch._C._dispatch_get_registrations_for_dispatch_key(key)
    return [lookup_op(name) for name in names if name.startswith("aten::")]


def has_kernels(*devices: str) -> Callable[[Any], bool]:
    """A test of whether PyTorch has a kernel of its own for each of the devices."""

    def check(op: Any) -> bool:
        entry = refusals.entries().get(op.name(), "")
        return all(re.search(rf"\b{device}\b", entry) for device in devices)

    return check


# These lists take longer than all the rest of `register`. They are made when this
# module is imported, so a server of forks makes them once for all its children.

# The CPU's operations that draw random numbers, and the place of their generator.
RANDOM = [
    (op, place)
    for op in operations_of("CPU")
    if (place := plan_of(op).generator) is not None
]
# PyTorch would build these operations from others for a spare device. CUDA has a
# kernel for each of them. So the simulated device also runs each as a whole, and
# its counts and messages are as on CUDA. Of those that PyTorch always builds from
# others, some have no kernel on the CPU, so there is nothing to run.
WHOLE = [
    *operations_of("CompositeExplicitAutogradNonFunctional"),
    *filter(has_kernels("CUDA"), operations_of("CompositeExplicitAutograd")),
    *filter(has_kernels("CPU", "CUDA"), operations_of("CompositeImplicitAutograd")),
]
CAST = operations_of("AutocastCUDA") + [
    lookup_op(f"aten::{name}") for name in IN_FLOAT16.split()
]


def register() -> None:
    """Register the functions of this file with PyTorch, for the simulated device."""
    fall_through = torch.library.fallthrough_kernel
    LIBRARIES.fallback(fallback, KEY)
    # Autocast doesn't cast the arguments of most operations.
    LIBRARIES.fallback(fall_through, AUTOCAST)
    for name, function in KERNELS.items():
        ATEN.impl(name, function, KEY)
    for name, function in CELLS.items():
        ATEN.impl(name, function, "CompositeImplicitAutograd")
    for key in ("Conjugate", "Negative"):  # otherwise, a copy would call itself forever
        ATEN.impl("_copy_from", fall_through, key)
    # As on CUDA, `module.to` and `x.data = y` may move a tensor to another device.
    ATEN.impl("_has_compatible_shallow_copy_type", lambda *_: True, KEY)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # replacing the CPU's functions is intended
        ATEN.impl("_pin_memory", pin, "CompositeExplicitAutograd")
        ATEN.impl("is_pinned", is_pinned, "CompositeExplicitAutograd")
        for op, place in RANDOM:
            kernel = torch.library.get_kernel(op, "CPU")
            refusing = generator.refusing(kernel, place)
            ATEN.impl(op, refusing, "CPU", with_keyset=True)
    for op in WHOLE:
        ATEN.impl(op, partial(fallback, op), KEY)
    lists = autocast_list("LOWER_PRECISION_FP"), autocast_list("PROMOTE")
    for op in CAST:
        ATEN.impl(op, casting(op, *lists), AUTOCAST)
