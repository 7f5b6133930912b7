"""What a program sees of the simulated device.

That is torch.sim, torch.accelerator, events, and storages.
"""

# ruff: noqa: ARG005 - there is one device, whichever a caller names

import ctypes
import os
import time
import types
from contextlib import nullcontext
from functools import wraps
from typing import Any

import torch
from torch.autograd import graph
from torch.jit._builtins import _register_builtin
from torch.utils import backend_registration
from torch.utils._device import _device_constructors

from to_device.names import SIMULATED
from to_device.sim import generator, ledger, memory, operations, queue, refusals
from to_device.sim.stand_ins import put


def install() -> None:
    """Register the device with PyTorch: once in a process, and for good."""
    refusals.process = os.getpid()
    module = types.ModuleType(f"torch.{SIMULATED}", "The simulated accelerator.")
    vars(module).update(FUNCTIONS, Stream=torch.Stream, Event=Event)
    backend_registration._setup_privateuseone_for_python_backend(
        rename=SIMULATED, backend_module=module, device_guard=Guard()
    )
    operations.register()
    generator.default = generator.Generator(SIMULATED)
    put(torch, Generator=generator.Generator, Event=Event)
    # PyTorch's own function asks C++ for the device's allocator. There is none, so the
    # process would end.
    torch.UntypedStorage.__new__ = staticmethod(new_storage)  # type: ignore[method-assign]
    common = FUNCTIONS.keys() & vars(torch.accelerator).keys()  # PyTorch's may fail
    put(torch.accelerator, **{name: FUNCTIONS[name] for name in common})
    put(torch.accelerator, set_device_index=refusals.check_device)
    _device_constructors()  # caches the factories before `pinning` replaces them
    for name in FACTORIES.split():
        put(torch, **{name: (make := pinning(getattr(torch, name)))})
        _register_builtin(make, f"aten::{name}")  # for torch.jit.script
    if torch.__version__ < "2.15":  # older versions copy numbers to the device
        put(torch.Tensor, __setitem__=set_item)
    backward = raising_errors(graph._engine_run_backward)
    graph._engine_run_backward = torch.autograd._engine_run_backward = backward


@wraps(torch._C.TensorBase.__setitem__)
def set_item(tensor: torch.Tensor, index: Any, value: Any) -> None:
    """Set tensor[index]. A number stays on the host, as it does on CUDA."""
    if tensor.device.type == SIMULATED and isinstance(value, int | float):
        value = torch.tensor(value, dtype=tensor.dtype, device=memory.CPU)
    torch._C.TensorBase.__setitem__(tensor, index, value)


# Python code may fail in a backward pass, in a hook for example. Then C++ asks the
# device's Guard for its type before C++ takes Python's error. A guard in Python can't
# answer while an error is pending. So the guard puts the error into this list, and
# `raising_errors` raises it for the caller of the backward pass.
_failed: list[BaseException] = []
# Raises the pending error. The function is looked up before there is an error, since
# the look-up could lose the error.
raise_pending = ctypes.pythonapi.PyErr_Occurred


def raising_errors(run: Any) -> Any:
    """Wrap the function that runs a backward pass, to raise the errors in `_failed`.

    The wrapper also keeps the pass in its caller's thread. PyTorch would use a new
    thread, which wouldn't keep to the number of CPU threads that the caller has set.
    """

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        try:
            with torch.autograd.set_multithreading_enabled(False):
                return run(*args, **kwargs)
        except SystemError:  # C++ missed Python's error, perhaps since Guard took it
            if not _failed:
                raise
        raise _failed.pop()

    return wrapper


class Guard(torch._C._acc.DeviceGuard):
    """Tells PyTorch the kind of device. There is no other to switch to."""

    def type_(self) -> Any:
        try:
            raise_pending()
        except BaseException as error:
            _failed.append(error)
        return torch._C._autograd.DeviceType.PrivateUse1


class Event(torch.Event):
    """A torch.Event, which notes when the device has done the work before the event."""

    reached: float | None = None  # by the host's clock, in seconds

    def __init__(self, *_: Any, enable_timing: bool = False, **__: Any) -> None:
        self.is_timed = enable_timing

    def record(self, _: Any = None) -> None:
        self.reached = None
        queue.put(lambda: setattr(self, "reached", time.perf_counter()))

    def synchronize(self) -> None:
        ledger.wait("event")

    def query(self) -> bool:
        return self.reached is not None

    def elapsed_time(self, end: Any) -> float:
        """Milliseconds from this event to `end`.

        Raises RuntimeError until the device has reached both events.
        """
        if not (self.is_timed and end.is_timed):
            raise ValueError(
                "Both events must be created with argument 'enable_timing=True'."
            )
        if self.reached is None or end.reached is None:
            raise RuntimeError(
                "Both events must be completed before calculating elapsed time."
            )
        return (end.reached - self.reached) * 1e3


# torch.sim has these functions, as torch.cuda has them for CUDA.
FUNCTIONS: dict[str, Any] = {
    "is_available": lambda: True,
    "is_initialized": lambda: True,
    "_is_in_bad_fork": lambda: os.getpid() != refusals.process,
    "device_count": lambda: 1,
    "current_device": lambda: 0,
    "set_device": refusals.check_device,
    "device": lambda device: nullcontext(),
    "get_device_name": lambda device=None: "Simulated accelerator",
    "synchronize": lambda device=None: ledger.wait("synchronize"),
    "memory_allocated": lambda device=None: memory.allocated,
    "memory_reserved": lambda device=None: memory.reserved,
    "max_memory_allocated": lambda device=None: memory.peak,
    "max_memory_reserved": lambda device=None: max(memory.peak, memory.reserved),
    "mem_get_info": lambda device=None: (memory.free(), memory.capacity),
    "get_memory_info": lambda device=None: (memory.free(), memory.capacity),
    "memory_stats": lambda device=None: {
        "allocated_bytes.all.current": memory.allocated,
        "allocated_bytes.all.peak": memory.peak,
    },
    "reset_peak_memory_stats": lambda device=None: memory.reset_peak(),
    "empty_cache": memory.empty_cache,
    "manual_seed": lambda seed: generator.default.manual_seed(seed) and None,
    "manual_seed_all": lambda seed: generator.default.manual_seed(seed) and None,
    "initial_seed": lambda: generator.default.initial_seed(),
    "get_rng_state": lambda device=None: generator.default.get_state(),
    "set_rng_state": lambda new_state, device=None: (
        generator.default.set_state(new_state) and None
    ),
    "get_amp_supported_dtype": lambda: [torch.bfloat16, torch.float16],
    "is_bf16_supported": lambda including_emulation=True: True,
}

# `pinning` replaces these functions of torch: PyTorch's own ask C++ for pinned memory,
# which this device can't give.
FACTORIES = "arange empty empty_like full ones rand randn tensor zeros zeros_like"


def pinning(make: Any) -> Any:
    @wraps(make)
    def wrapper(*args: Any, pin_memory: bool = False, **kwargs: Any) -> Any:
        tensor = make(*args, **kwargs)
        if pin_memory and tensor.is_cpu:
            tensor.untyped_storage().pinned = True
        elif pin_memory and make.__name__ != "tensor":  # torch.tensor pins its data
            raise RuntimeError("Only dense CPU tensors can be pinned")
        return tensor

    return wrapper


def new_storage(cls: Any, *args: Any, **kwargs: Any) -> Any:
    """Make torch.UntypedStorage(size, device="sim") work."""
    if torch.device(kwargs.get("device") or "cpu").type != SIMULATED:
        return torch._C.StorageBase.__new__(cls, *args, **kwargs)
    with torch._C.DisableTorchFunction():
        size = args[0] if args else 0
        return torch.empty(size, dtype=torch.uint8, device=SIMULATED).untyped_storage()
