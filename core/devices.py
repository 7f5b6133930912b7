"""Devices: find, name, and synchronize them, and read their memory use.

All differences between devices are handled here: no training loop asks "is this CUDA?".
"""

import hashlib
import os
import platform
import uuid as uuids
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from functools import cache
from pathlib import Path

import torch

from core.measure.environment import DeviceSummary, Environment, Machine
from to_device.devices import accelerator, name
from to_device.errors import ExplainedError
from to_device.names import SIMULATED
from to_device.sim import simulation

OWN_THREADS = torch.get_num_threads()  # torch's default number of CPU threads


def available() -> list[str]:
    """The names of the devices to train on, the fastest kind first."""
    device = accelerator()
    return [device.type, "cpu"] if device is not None else ["cpu"]


def other_than_cpu() -> torch.device | None:
    """The simulated accelerator if it works here; otherwise the real one, or None."""
    if simulation.works():
        return torch.device(SIMULATED)
    return accelerator()


class UntimedError(ExplainedError):
    """Raised for measurements on a device that can't be timed."""


def resolve(name: str) -> torch.device:
    """The device with this name; "auto" is the accelerator, or else the CPU.

    "sim" installs the simulated accelerator in this process for good. Raises
    ExplainedError for a device that this machine doesn't have.
    """
    if name == SIMULATED:
        if why_not := simulation.offer():
            raise ExplainedError(why_not)
        return torch.device(SIMULATED)
    here = available()
    if name == "auto":
        return torch.device(here[0])
    if name not in here:
        raise ExplainedError(
            f"There is no {name} device on this machine. Choose auto or "
            f"{' or '.join(here)}."
        )
    return torch.device(name)


def resolve_timed(name: str) -> torch.device:
    """Like `resolve`, but refuses the simulated accelerator, which is never timed."""
    if name == SIMULATED:
        raise UntimedError(
            "The simulated accelerator follows a GPU's rules, but doesn't have a GPU's "
            "speed, so nothing is timed on it."
        )
    return resolve(name)


def synchronize(device: torch.device) -> None:
    """Wait until the device has finished its queue; the CPU has none."""
    if device.type != "cpu":
        torch.accelerator.synchronize(device)


def usable(device: torch.device) -> bool:
    """Whether this process can still use the device.

    A failed assertion in a CUDA kernel breaks the device for the whole process.
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
    """How many CPU threads train: all cores but one, and at most `own`.

    If OMP_NUM_THREADS is set, the number is `own`, torch's own choice. One core stays
    free because the threads of an operation spin while they wait for the slowest. On
    two cores, a step of the CNN takes 26 ms with one thread and 18 ms with two. Beside
    another busy program, the step still takes 26 ms with one thread, but 56 to 88 ms
    with two, and up to 1,300 ms beside several programs. If waiting threads sleep
    (OMP_WAIT_POLICY=PASSIVE, GOMP_SPINCOUNT), two threads take 21 to 39 ms, and 38 to
    65 ms beside another program. The digits of a run's results depend on the number of
    threads, so this number doesn't follow the machine's load.
    """
    if "OMP_NUM_THREADS" in os.environ:
        return own
    return max(1, min(own, usable_cores() - 1))


def leave_a_core() -> None:
    torch.set_num_threads(training_threads(torch.get_num_threads()))


def usable_cores() -> int:
    """How many logical cores this process may run on."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
    return usable or os.cpu_count() or 1


@contextmanager
def cpu_threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def backend(device: torch.device) -> str:
    """The platform: "CUDA", "ROCm", "XPU", "MPS", "CPU", or "Simulated"."""
    if device.type == "cuda":
        return "ROCm" if torch.version.hip else "CUDA"
    if device.type == SIMULATED:
        return "Simulated"
    return device.type.upper()


def uuid(device: torch.device) -> str:
    """The UUID by which NVML knows an NVIDIA GPU; "" for other devices."""
    if device.type != "cuda" or torch.version.hip:
        return ""
    gpu = getattr(torch.cuda.get_device_properties(device), "uuid", None)
    return "" if gpu is None else f"GPU-{gpu}"


def memory(device: torch.device) -> tuple[int | None, int | None]:
    """Free and total bytes of the device; (None, None) if unknown."""
    if device.type in ("cuda", "xpu", SIMULATED):
        return torch.get_device_module(device).mem_get_info(device)
    try:
        import psutil  # comes with dask, which a bare machine may lack
    except ImportError:
        return None, None
    host = psutil.virtual_memory()  # also for MPS, whose GPU shares the host's memory
    return host.available, host.total


def half_dtype(device: torch.device) -> torch.dtype:
    """The 16-bit dtype to train in: bfloat16, or float16 if bfloat16 is missing."""
    if device.type == "cuda" and not torch.cuda.is_bf16_supported(False):
        return torch.float16  # GPUs before Ampere only emulate bfloat16
    return torch.bfloat16


def allocated(device: torch.device) -> int | None:
    """Bytes of this process's tensors on the device; None if they aren't counted."""
    backend = getattr(torch, device.type, None)
    # MPS has the second name.
    for counter in ("memory_allocated", "current_allocated_memory"):
        if hasattr(backend, counter):
            return getattr(backend, counter)()
    return None


def environment(device: torch.device) -> Environment:
    """The device, threads, and versions to store with a number that is measured now."""
    return Environment(
        device=str(device),
        device_name=name(device),
        backend=backend(device),
        threads=torch.get_num_threads(),
        torch=str(torch.__version__),  # unpickling a TorchVersion would need torch
        python=platform.python_version(),
        system=f"{platform.system()} {platform.machine()}",
    )


def describe() -> Machine:
    summaries = []
    for device in map(torch.device, available()):
        facts, (free, total) = asdict(environment(device)), memory(device)
        summaries.append(DeviceSummary(**facts, free_bytes=free, total_bytes=total))
    return Machine(
        tuple(summaries),
        os.cpu_count(),
        usable_cores(),
        identity(),
        simulates=simulation.works(),
        why_not=simulation.why_not or "",
    )


@cache
def identity() -> str:
    """A name that all workers of a machine agree on, and no two machines share.

    Measurements are stored under this name and shown only on the same machine, so it
    covers the host and whatever a figure depends on: devices, cores, threads. As a
    hash, it reveals nothing about the host.
    """
    names = map(name, map(torch.device, available()))
    parts = (platform.node(), _host_id(), *names, usable_cores(), training_threads())
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def _host_id() -> str:
    """The id of the installed operating system.

    A container often has no such id. The id of the host's boot then takes its place, so
    measurements from before a reboot aren't found.
    """
    for file in ("/etc/machine-id", "/proc/sys/kernel/random/boot_id"):
        with suppress(OSError):
            if host_id := Path(file).read_text().strip():
                return host_id
    return f"{uuids.getnode():x}"  # the network card's address
