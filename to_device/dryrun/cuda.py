"""Makes CUDA's names mean the simulated device, in the process of a dry run.

The script asks for "cuda" and gets what a machine with a GPU gives: `torch.cuda`, a
device's type, `is_cuda`, files from torch.save. If the script asks for something that
one simulated device can't do, the run ends with a sentence that says so.
"""

# ruff: noqa: ARG005 - there is one device, whichever a caller names

import ctypes
import sys
import threading
import types
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map_only

from to_device.gpus import GPU, MEBIBYTE
from to_device.names import SIMULATED
from to_device.sim import frontend, memory, sizes
from to_device.sim.stand_ins import put

is_requested = False  # whether the script has asked for CUDA
compiles = False  # whether the script has called torch.compile
makes_bfloat16 = False  # whether a function has made a tensor in bfloat16
# What the device says that it is: it computes like an A100, and has one processor.
gpu = GPU("Simulated accelerator", "Simulated accelerator", (8, 0), (0, 0), 1, 2048, 40)

# Asks whether a mask may become a nested tensor
NESTING = nn.TransformerEncoder.forward.__code__
type_of: Any = torch.device.__dict__["type"].__get__  # torch's own `device.type`
# Py_TPFLAGS_IMMUTABLETYPE, the flag by which torch.device refuses changes, and the
# offset of tp_flags in a PyTypeObject, in bytes.
IMMUTABLE, FLAGS_AT = 1 << 8, 168


class CannotSimulateError(BaseException):
    """Ends the dry run. A script's `except Exception` doesn't catch it."""


class Kind(str):
    """The simulated device's type, which equals both "cuda" and "sim"."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return other in ("cuda", SIMULATED)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


KIND = Kind("cuda")


def is_device(value: Any) -> bool:
    return isinstance(value, torch.device | str)


def to_simulated(value: Any) -> Any:
    """The simulated device for a CUDA device or its name; else the value itself."""
    global is_requested
    index: Any
    if isinstance(value, torch.device) and type_of(value) == "cuda":
        index = value.index
    elif isinstance(value, str) and value.partition(":")[0] == "cuda":
        index = value.partition(":")[2] or None
    else:
        return value
    is_requested = True
    if index is None:
        return torch.device(SIMULATED)
    if int(index) > 0:
        raise CannotSimulateError(f"a second GPU, cuda:{index}")
    return torch.device(SIMULATED, 0)


def call(function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Call a torch function, with the simulated device in CUDA's place."""
    if function is Tensor.cuda:
        function = Tensor.to
        place = kwargs.pop("device", args[1] if len(args) > 1 else None)
        if isinstance(place, int):
            place = f"cuda:{place}"
        args = (args[0], "cuda" if place is None else place)
    elif getattr(function, "__self__", None) is Tensor.is_cuda:
        return args[0].device.type == SIMULATED
    elif function is torch.device:
        return to_simulated(function(*args, **kwargs))
    if function is Tensor.type:
        return _type(*args, **kwargs)
    args = tuple(map(to_simulated, args))
    kwargs = {name: to_simulated(value) for name, value in kwargs.items()}
    result = function(*args, **kwargs)
    if isinstance(result, Tensor) and result.dtype is torch.bfloat16:
        global makes_bfloat16
        makes_bfloat16 = makes_bfloat16 or type_of(result.device) == SIMULATED
    generator = kwargs.get("generator")
    is_ours = generator is not None and type_of(generator.device) == SIMULATED
    if is_ours and isinstance(result, Tensor) and result.is_cpu:
        raise RuntimeError(
            "Expected a 'cpu' device type for generator but found 'cuda'"
        )
    return result


def _type(tensor: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """Do what `tensor.type` does: name the tensor's type, or convert the tensor."""
    if dtype is None:
        return tensor.type().replace(f"torch.{SIMULATED}.", "torch.cuda.")
    if kind := legacy_type(dtype):
        return kind.converted(tensor, non_blocking)
    return tensor.type(dtype, non_blocking)


class Legacy(type):
    """The class of torch.cuda.FloatTensor and others, which make tensors of a dtype."""

    dtype: torch.dtype

    def __call__(cls, *args: Any) -> Tensor:
        if all(isinstance(arg, int | torch.Size) for arg in args):
            size = args or (0,)  # without a size, it makes a tensor with no elements
            return torch.empty(*size, dtype=cls.dtype, device=SIMULATED)
        numpy = sys.modules.get("numpy")  # torch works without it, too
        if numpy and isinstance(args[0], numpy.ndarray):
            return cls.converted(torch.from_numpy(args[0]))
        tensor: Tensor = getattr(torch, cls.__name__)(*args)
        return tensor.to(SIMULATED)

    def converted(cls, tensor: Tensor, non_blocking: bool = False) -> Tensor:
        """Move the tensor, then convert it there, as measured on an H100."""
        return tensor.to(SIMULATED, non_blocking=non_blocking).to(cls.dtype)

    def __instancecheck__(cls, value: Any) -> bool:
        is_ours = isinstance(value, Tensor) and type_of(value.device) == SIMULATED
        return is_ours and value.dtype is cls.dtype


LEGACY = {
    kind.__name__: Legacy(kind.__name__, (), {"dtype": kind.dtype})
    for kind in torch._tensor_classes
    if kind.__module__ == "torch"
}


def legacy_type(kind: Any) -> Legacy | None:
    """The type with a name such as "torch.cuda.FloatTensor"; None for anything else."""
    if isinstance(kind, str) and kind.startswith("torch.cuda."):
        return LEGACY.get(kind.rpartition(".")[2])
    return kind if isinstance(kind, Legacy) else None


def set_default_type(kind: Any) -> None:
    """Replaces torch.set_default_tensor_type."""
    if ours := legacy_type(kind):
        torch.set_default_dtype(ours.dtype)
        torch.set_default_device(SIMULATED)
    else:
        _set_default_type(kind)


_set_default_type = torch.set_default_tensor_type


def install(mode: Callable[[], TorchFunctionMode]) -> None:
    """Install CUDA's names for good, once in a process with the simulated device.

    `mode` makes the mode that calls torch's functions through `call`. Each of the
    script's threads needs its own mode.
    """
    _name_the_device()
    put(torch.cuda, **(frontend.FUNCTIONS | ANSWERS | LEGACY))
    torch.serialization.register_package(1, _tag, _restore)
    backward_class: Any = torch.autograd.function.BackwardCFunction
    refuse_sharing = _refusing("CUDA tensors that processes share")
    asks = _without(type(mode()), torch.overrides.has_torch_function)
    for owner, name, replacement in (
        (torch, "compile", skip_compile),
        (torch, "set_default_tensor_type", set_default_type),
        (torch.backends.cudnn, "is_acceptable", lambda _: False),
        (torch.overrides, "has_torch_function", asks),
        (torch.UntypedStorage, "_share_cuda_", refuse_sharing),
        (Tensor, "record_stream", lambda *_: None),  # would refuse our Stream
        (nn.DataParallel, "scatter", _scatter),
        (backward_class, "apply", _within(mode, backward_class.apply)),
    ):
        put(owner, **{name: replacement})
    if torch.distributed.is_available():
        from to_device.dryrun import one_rank

        one_rank.install(_refuse)
    for name in ("is_autocast_enabled", "get_autocast_dtype"):
        put(torch, **{name: _of_simulated(getattr(torch, name))})
    autocast: Any = torch.autocast
    init = autocast.__init__

    def with_device(this: Any, device_type: str, *args: Any, **kwargs: Any) -> None:
        device_type = SIMULATED if device_type == "cuda" else device_type
        init(this, device_type, *args, **kwargs)

    put(autocast, __init__=with_device)
    thread_class: Any = threading.Thread
    start = thread_class.start

    def start_with_mode(thread: Any) -> None:
        thread.run = _within(mode, thread.run)
        start(thread)

    put(thread_class, start=start_with_mode)


def _within(mode: Callable[[], TorchFunctionMode], function: Callable) -> Callable:
    def wrapper(*args: Any) -> Any:
        with mode():
            return function(*args)

    return wrapper


def _without(ours: type, asks: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Wrap torch.overrides.has_torch_function, which then doesn't count our mode.

    A transformer's layers ask it, and take a faster way in evaluation if it says False.
    On that way, CUDA refuses masks that it takes in training.
    """

    def has_torch_function(tensors: Any) -> bool:
        if not asks(tensors):
            return False
        if sys._getframe(1).f_code is NESTING:  # the device has no nested tensors
            return True
        if sizes.is_on and any(isinstance(x, Tensor) and x.is_cpu for x in tensors):
            return True  # the CPU's faster way doesn't tell sizes
        modes = torch.overrides._get_current_function_mode_stack()
        is_mode = any(not isinstance(mode, ours) for mode in modes)
        return is_mode or any(map(_is_subclass, tensors))

    return has_torch_function


def _is_subclass(value: Any) -> bool:
    """Whether a value is a tensor of a class that has its own way with functions."""
    disabled = torch._C._disabled_torch_function_impl  # which a parameter has
    function = getattr(type(value), "__torch_function__", disabled)
    return type(value) is not Tensor and function is not disabled


def _name_the_device() -> None:
    """Make the simulated torch.device call itself "cuda", in its type and as text.

    Python refuses changes to the class torch.device, so a flag is cleared meanwhile.
    """
    cls: Any = torch.device
    flags = ctypes.c_ulong.from_address(id(cls) + FLAGS_AT)
    flags.value &= ~IMMUTABLE
    try:
        cls.type = property(
            lambda device: KIND if type_of(device) == SIMULATED else type_of(device)
        )
        for name in ("__repr__", "__str__"):
            setattr(cls, name, _saying_cuda(cls.__dict__[name]))
    finally:
        flags.value |= IMMUTABLE


def _saying_cuda(text: Callable[[Any], str]) -> Callable[[Any], str]:
    return lambda device: text(device).replace(SIMULATED, "cuda")


def _is_available() -> bool:
    global is_requested
    is_requested = True
    return True


def _refuse(feature: str) -> None:
    raise CannotSimulateError(feature)


def _refusing(feature: str) -> Callable:
    return lambda *_, **__: _refuse(feature)


def _of_simulated(function: Callable) -> Callable:
    """Wrap a function of a device's type, so that "cuda" means the simulated device."""
    return lambda kind="cuda": function(SIMULATED if kind == "cuda" else kind)


def skip_compile(model: Any = None, **_: Any) -> Any:
    """Replaces torch.compile, and returns the model as it is.

    Compiling changes how fast the model is, but not which tensors move where.
    """
    global compiles
    compiles = True
    return (lambda function: function) if model is None else model


def _tag(storage: Any) -> str | None:
    return "cuda:0" if type_of(storage.device) == SIMULATED else None


def _restore(storage: Any, location: str) -> Any:
    is_ours = location.startswith("cuda")
    return storage.to(device=torch.device(SIMULATED)) if is_ours else None


def _scatter(_: Any, inputs: Any, kwargs: Any, __: Any) -> Any:
    """Move the inputs, as nn.DataParallel does with one GPU."""
    inputs, kwargs = tree_map_only(
        Tensor, lambda tensor: tensor.to(SIMULATED), (inputs, kwargs)
    )
    return (inputs,), (kwargs,)


class Stream:
    """Stands in for torch.cuda.Stream. All work is done at once, so no stream waits."""

    device = 0

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def wait_stream(self, _: Any) -> None: ...

    def wait_event(self, _: Any) -> None: ...

    def record_event(self, event: Any = None) -> Any:
        event = event or frontend.Event()
        event.record()
        return event

    def synchronize(self) -> None:
        frontend.FUNCTIONS["synchronize"]()

    def query(self) -> bool:
        return True


class Graph:
    """Stands in for a class of CUDA graphs, which libraries name in annotations."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise CannotSimulateError("CUDA graphs")


class Device:
    """Stands in for torch.cuda.device, which libraries also give to isinstance."""

    def __init__(self, device: Any) -> None:
        number = to_simulated(f"cuda:{device}" if isinstance(device, int) else device)
        self.idx = getattr(number, "index", None) or 0

    def __enter__(self) -> None: ...

    def __exit__(self, *_: Any) -> None: ...


NOTHING = (
    "init ipc_collect reset_accumulated_memory_stats seed seed_all "
    "set_per_process_memory_fraction set_stream"
)
ANSWERS: dict[str, Any] = {
    **{name: lambda *_, **__: None for name in NOTHING.split()},
    **{name: type(name, (Graph,), {}) for name in ("CUDAGraph", "graph")},
    "Stream": Stream,
    "current_stream": lambda device=None: Stream(),
    "default_stream": lambda device=None: Stream(),
    "device": Device,
    "make_graphed_callables": _refusing("CUDA graphs"),
    "_lazy_init": _refusing("CUDA's own library"),
    "is_available": _is_available,
    "is_current_stream_capturing": lambda: False,  # older optimizers ask in each step
    "Event": frontend.Event,
    "stream": lambda stream: nullcontext(),
    "get_device_name": lambda device=None: gpu.name,
    "get_device_properties": lambda device=None: types.SimpleNamespace(
        name=gpu.name,
        total_memory=gpu.mebibytes[0] * MEBIBYTE or memory.capacity,
        major=gpu.capability[0],
        minor=gpu.capability[1],
        multi_processor_count=gpu.processors,
        L2_cache_size=gpu.l2_mebibytes * MEBIBYTE,
        regs_per_multiprocessor=65_536,
        max_threads_per_multi_processor=gpu.threads,
        shared_memory_per_block=48 << 10,
        warp_size=32,
        is_integrated=0,
        is_multi_gpu_board=0,
    ),
    "get_device_capability": lambda device=None: gpu.capability,
    "get_arch_list": lambda: [f"sm_{gpu.capability[0]}{gpu.capability[1]}"],
    "is_bf16_supported": lambda including_emulation=True: (
        including_emulation or gpu.has_bfloat16
    ),
    "memory_summary": lambda *_, **__: f"{memory.allocated:,} bytes allocated",
    "memory_cached": lambda device=None: memory.allocated,
    "reset_max_memory_allocated": lambda device=None: memory.reset_peak(),
    "reset_max_memory_cached": lambda device=None: memory.reset_peak(),
    "get_rng_state_all": lambda: [frontend.FUNCTIONS["get_rng_state"]()],
    "set_rng_state_all": lambda new_states: frontend.FUNCTIONS["set_rng_state"](
        new_states[0]
    ),
}
