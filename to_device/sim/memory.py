"""The simulated device's memory: tensors on "sim" that lie in CPU memory.

A tensor on the device is a plain torch.Tensor, not a subclass, with a storage
on "sim". DLPack, with which libraries share memory, makes this tensor: PyTorch
packs a CPU tensor, this module changes the package's label to "some other
device", and PyTorch unpacks a tensor on its spare device. The new storage
holds the CPU tensor's storage, so both live equally long. PyTorch itself takes
care of views and of autograd's saved tensors.
"""

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

CPU = torch.device("cpu")
aten = torch.ops.aten

# DLTensor, the beginning of what the capsule holds, is {void* data; {int32 device_type;
# int32 device_id}; ...}: https://dmlc.github.io/dlpack/latest/c_api.html
DEVICE_TYPE_AT = 8  # the offset of device_type, in bytes
OTHER_DEVICE = 12  # a device_type: DLPack calls it kDLExtDev, PyTorch PrivateUse1
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype = ctypes.c_void_p
_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]

GRANULE = 512  # CUDA's allocator rounds up to a multiple of this many bytes
allocated = peak = 0  # bytes
reserved = 0  # bytes that a caching allocator would have from the driver
capacity = 4 << 30  # bytes
_lock = threading.RLock()  # guards these numbers, since a program may have threads


@contextmanager
def limited_to(size: int) -> Iterator[None]:
    """Within the block, give the device only `size` bytes, as on a smaller card."""
    global capacity
    before, capacity = capacity, size
    try:
        yield
    finally:
        capacity = before


def free() -> int:
    return max(0, capacity - allocated)


def reset_peak() -> None:
    global peak
    peak = allocated


def empty_cache() -> None:
    global reserved
    reserved = allocated


def check_room(size: int) -> None:
    """Raise torch.OutOfMemoryError, in CUDA's words, if `size` bytes don't fit."""
    if capacity < allocated + size < 1 << 63:  # PyTorch itself refuses 2**63 or more
        raise torch.OutOfMemoryError(
            f"SIM out of memory. Tried to allocate {_mib(size)}. GPU 0 has a total "
            f"capacity of {_mib(capacity)} of which {_mib(free())} is free. Of the "
            f"allocated memory {_mib(allocated)} is allocated by PyTorch."
        )


def _mib(size: int) -> str:
    return f"{size / 2**20:.2f} MiB" if size < 2**30 else f"{size / 2**30:.2f} GiB"


class Block:
    """A piece of the device's memory, which counts as taken while the block exists.

    A storage on the device holds its block, so both live equally long.
    """

    def __init__(self, storage: torch.UntypedStorage) -> None:
        global allocated, peak, reserved
        self.size, self.storage = 0, storage
        size = -(-storage.nbytes() // GRANULE) * GRANULE
        with _lock:
            check_room(size)
            self.size = size
            allocated += size
            peak = max(peak, allocated)
            reserved = max(reserved, allocated)

    def __del__(self) -> None:
        global allocated
        with _lock:
            allocated -= self.size


def to_device(host: Tensor) -> Tensor:
    """A new tensor on the device, which shares the memory of the CPU tensor `host`."""
    storage = host.untyped_storage()
    block = Block(storage)
    flat = torch.empty(0, dtype=torch.uint8, device=CPU).set_(storage)
    capsule = torch._C._to_dlpack(flat)
    label = _pointer(capsule, b"dltensor") + DEVICE_TYPE_AT
    ctypes.c_int32.from_address(label).value = OTHER_DEVICE
    device = torch._C._from_dlpack(capsule)
    device.untyped_storage().block = block  # type: ignore[attr-defined]
    return as_view(device, host)


def to_host(device: Tensor) -> Tensor:
    """A CPU tensor that shares the memory of the tensor `device`."""
    storage: Any = device.untyped_storage()
    if hasattr(storage, "block"):
        storage = storage.block.storage
    else:  # C++ made this storage over our memory, as when a tensor is pickled
        memory = (ctypes.c_uint8 * storage.nbytes()).from_address(storage.data_ptr())
        storage = torch.frombuffer(memory, dtype=torch.uint8).untyped_storage()
    host = torch.empty(0, dtype=device.dtype, device=CPU)
    host.set_(storage, device.storage_offset(), device.shape, device.stride())
    # A conjugated or negated tensor may be a view, whose values aren't computed yet.
    host = host.conj() if device.is_conj() else host
    return host._neg_view() if device.is_neg() else host


def as_view(base: Tensor, host: Tensor) -> Tensor:
    """A view of `base`, which is on the device, with the dtype and layout of `host`."""
    if base.dtype != host.dtype:
        base = describe(aten.as_strided.default, base, (0,), (1,), 0).view(host.dtype)
    shape, stride, offset = host.shape, host.stride(), host.storage_offset()
    return describe(aten.as_strided.default, base, shape, stride, offset)


def describe(op: Any, *args: Any) -> Any:
    """Run an operation's CPU kernel, which must touch no memory, on device tensors."""
    return op._op_dk(torch._C.DispatchKey.CPU, *args)


def follow(device: Tensor, host: Tensor) -> None:
    """Give the device tensor the shape of `host`.

    If the device tensor's own memory is too small for this shape, the tensor
    also gets the memory of `host`.
    """
    storage = device.untyped_storage()
    if storage.nbytes() < host.untyped_storage().nbytes():
        storage = to_device(host).untyped_storage()
    place = host.storage_offset(), host.shape, host.stride()
    describe(aten.set_.source_Storage_storage_offset, device, storage, *place)
