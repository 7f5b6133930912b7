"""What hardware is here: find it, name it, wait for it, ask for its memory.

The difference between devices is resolved in this file, so that no loop asks
"is this CUDA?".
"""

import hashlib
import os
import platform
import subprocess
import sys
import uuid as uuids
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from functools import cache
from pathlib import Path

import torch

from core.errors import ExplainedError
from core.measure.environment import DeviceSummary, Environment, Machine

OWN_THREADS = torch.get_num_threads()  # what torch takes if nobody sets it


def accelerator() -> torch.device | None:
    """The accelerator that torch can use now: CUDA, ROCm (as "cuda"), XPU or MPS."""
    if not torch.accelerator.is_available():
        return None
    return torch.accelerator.current_accelerator()


def available() -> list[str]:
    """Names of the devices that can be trained on, the fastest kind first."""
    found = accelerator()
    return [found.type, "cpu"] if found is not None else ["cpu"]


def every() -> list[torch.device]:
    """All devices of the accelerator, one by one, then the CPU."""
    found = accelerator()
    if found is None:
        return [torch.device("cpu")]
    count = torch.accelerator.device_count()
    return [*(torch.device(found.type, i) for i in range(count)), torch.device("cpu")]


def resolve(name: str) -> torch.device:
    """The device called `name`; "auto" is the accelerator if there is one, else CPU."""
    here = available()
    if name == "auto":
        return torch.device(here[0])
    if name not in here:
        raise ExplainedError(
            f"There is no {name} device on this machine. Choose auto or "
            f"{' or '.join(here)}."
        )
    return torch.device(name)


def synchronize(device: torch.device) -> None:
    """Wait until the device has done all it was given; CPU and meta always have."""
    if device.type not in ("cpu", "meta"):
        torch.accelerator.synchronize(device)


def usable(device: torch.device) -> bool:
    """Whether the device still works for this process; a full one does.

    After an assertion in a kernel, CUDA answers every call with that error.
    """
    try:
        torch.zeros(1, device=device).add_(1)
        synchronize(device)
    except torch.OutOfMemoryError:
        return True
    except RuntimeError:
        return False
    return True


def training_threads(own: int = OWN_THREADS) -> int:
    """CPU threads for training, where torch by itself would take `own`.

    All cores but one, unless OMP_NUM_THREADS is set.

    The threads of an operation wait for the slowest of them, and spin while they wait.
    On two cores a step of the CNN takes 26 ms with one thread and 18 with two, but with
    another program on one of the cores 26 and 56 to 88, and with more of them up to
    1,300. Threads that sleep while they wait (OMP_WAIT_POLICY=PASSIVE, GOMP_SPINCOUNT)
    bring 21 to 39, and 38 to 65 beside the program: too little for so much. Nor can the
    number follow the load, since one thread and two do not end in the same digits.
    """
    if "OMP_NUM_THREADS" in os.environ:
        return own
    return max(1, min(own, usable_cores() - 1))


def leave_a_core() -> None:
    """Give torch's CPU work as many threads as `training_threads` says."""
    torch.set_num_threads(training_threads(torch.get_num_threads()))


def usable_cores() -> int:
    """The logical cores that this process may run on."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
    return usable or os.cpu_count() or 1


@contextmanager
def cpu_threads(count: int) -> Iterator[None]:
    """Within it, torch's CPU work has `count` threads; after it, as many as before."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def backend(device: torch.device) -> str:
    """The platform behind a device, by its usual name."""
    if device.type == "cuda":
        return "ROCm" if torch.version.hip else "CUDA"
    return device.type.upper()


def name(device: torch.device) -> str:
    """The product name: "NVIDIA H200", "AMD EPYC 9B14", "Apple M3"."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    if device.type == "xpu":
        return torch.xpu.get_device_name(device)
    return cpu_name()


def uuid(device: torch.device) -> str:
    """By what NVML knows an NVIDIA GPU, whatever its number is here; "" of others."""
    if device.type != "cuda" or torch.version.hip:
        return ""
    known = getattr(torch.cuda.get_device_properties(device), "uuid", None)
    return "" if known is None else f"GPU-{known}"


@cache
def cpu_name() -> str:
    if sys.platform == "darwin":
        command = ["sysctl", "-n", "machdep.cpu.brand_string"]
        return subprocess.run(command, capture_output=True, text=True).stdout.strip()
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def memory(device: torch.device) -> tuple[int | None, int | None]:
    """Bytes free and in all, of the device; (None, None) where nothing tells."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)
    if device.type == "xpu":
        return torch.xpu.mem_get_info(device)
    try:
        import psutil  # comes with dask; a bare machine may lack it
    except ImportError:
        return None, None
    host = psutil.virtual_memory()  # MPS shares it
    return host.available, host.total


def half_dtype(device: torch.device) -> torch.dtype:
    """The 16-bit dtype to train in: bfloat16, or float16 where that is missing."""
    if device.type == "cuda" and not torch.cuda.is_bf16_supported(False):
        return torch.float16  # before NVIDIA's Ampere; emulated, it would be slow
    return torch.bfloat16


def allocated(device: torch.device) -> int | None:
    """Bytes of this process's tensors on the device; None where nothing counts them."""
    backend = getattr(torch, device.type, None)
    for name in ("memory_allocated", "current_allocated_memory"):  # the latter is MPS's
        if hasattr(backend, name):
            return getattr(backend, name)()
    return None


def environment(device: torch.device) -> Environment:
    """What a number that is measured on the device now has to be read with."""
    if device.type == "meta":  # which computes nothing: what took time is the host
        device = torch.device("cpu")
    return Environment(
        device=str(device),
        device_name=name(device),
        backend=backend(device),
        threads=torch.get_num_threads(),
        torch=str(torch.__version__),  # a TorchVersion would need torch to unpickle
        python=platform.python_version(),
        system=f"{platform.system()} {platform.machine()}",
    )


def describe() -> Machine:
    """This machine at a glance, without its datasets."""
    found = []
    for device in map(torch.device, available()):
        here, (free, total) = environment(device), memory(device)
        found.append(DeviceSummary(**asdict(here), free_bytes=free, total_bytes=total))
    return Machine(tuple(found), os.cpu_count(), usable_cores(), identity())


@cache
def identity() -> str:
    """A name that all workers of a machine agree on, and no two machines share.

    What was measured is known by it, and shown on no other machine. So it is of the
    host and of all that a figure depends on: devices, cores, threads. It is a hash,
    which tells nothing of the host.
    """
    names = [name(torch.device(each)) for each in available()]
    parts = (*_host(), *names, usable_cores(), training_threads())
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def _host() -> tuple[str, str]:
    """The host's name, and what was drawn by lot for it.

    That is made when a system is installed. An image of a container has none, and has
    what the kernel draws at each boot: what was measured before is then not found.
    """
    for file in ("/etc/machine-id", "/proc/sys/kernel/random/boot_id"):
        with suppress(OSError):
            if drawn := Path(file).read_text().strip():
                return platform.node(), drawn
    return platform.node(), f"{uuids.getnode():x}"  # of its network card
