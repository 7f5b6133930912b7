"""The devices that can race on a machine: plain data, without torch."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from core.measure.environment import Machine
from core.registry import stored


@stored("candidate")
@dataclass(frozen=True)
class Candidate:
    """A device, with the CPU threads that its process may use."""

    device: str  # a name that core.devices.resolve accepts
    backend: str  # "CPU", "CUDA", ...
    name: str  # "CPU (1 thread)", "NVIDIA H200"
    threads: int


Pair = tuple[Candidate, Candidate]


def cpu(threads: int) -> Candidate:
    return Candidate(
        "cpu", "CPU", f"CPU ({threads} thread{'s' * (threads != 1)})", threads
    )


def candidates(machine: Machine) -> list[Candidate]:
    """The accelerators, then the CPU with different numbers of threads.

    The CPU has as many threads as usable cores, one fewer, or a smaller power of two.
    """
    cores = machine.usable_cores
    accelerators = [
        Candidate(device.device, device.backend, device.device_name, spare(cores))
        for device in machine.devices
        if device.backend != "CPU"
    ]
    counts = {cores, spare(cores), *(2**p for p in range(cores.bit_length() - 1))}
    return accelerators + [cpu(threads) for threads in sorted(counts, reverse=True)]


def spare(cores: int) -> int:
    """The cores for training: all but one, which the server uses; at least 1."""
    return max(1, cores - 1)


def default_pair(options: Sequence[Candidate]) -> Pair:
    """The CPU and the best accelerator.

    Without an accelerator: the CPU with one thread, and with all threads.
    `options` are a machine's `candidates`, in their order. Against an accelerator, the
    CPU gets as many threads as the app trains with. A win over fewer threads would say
    nothing.
    """
    best, last = options[0], options[-1]
    return (last if best.backend == "CPU" else cpu(best.threads)), best


def tell_apart(first: Candidate, second: Candidate) -> Pair:
    """The two candidates; if they are the same, the second gets another name."""
    if first == second:
        second = replace(second, name=f"{second.name}, again")
    return first, second
