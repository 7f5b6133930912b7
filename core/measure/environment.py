"""Where and when a number was measured: plain data without torch."""

from dataclasses import dataclass, field
from datetime import UTC, datetime

from core.data.fashion_mnist import DatasetStatus
from core.registry import stored
from to_device.names import SIMULATED


@stored("environment")
@dataclass(frozen=True)
class Environment:
    device: str  # "cpu", "cuda", "cuda:1"
    device_name: str  # the product's name: "NVIDIA H200"
    backend: str  # "CPU", "CUDA", "ROCm", "XPU", "MPS" or "Simulated"
    threads: int  # torch's number of threads for an operation on the CPU
    torch: str  # version
    python: str  # version
    system: str  # "Linux x86_64"

    @property
    def is_simulated(self) -> bool:
        """Whether this is the simulated accelerator, which is never timed."""
        return self.device.partition(":")[0] == SIMULATED


@dataclass(frozen=True)
class DeviceSummary(Environment):
    """A device to train on, with its memory in bytes; None if that is unknown."""

    free_bytes: int | None
    total_bytes: int | None


@dataclass(frozen=True)
class Machine:
    devices: tuple[DeviceSummary, ...]  # the fastest kind first, the CPU last
    cores: int | None  # logical cores of the machine
    usable_cores: int  # logical cores that torch's process may run on
    identity: str = ""  # unique to a machine, see core.devices; "": unknown
    fashion_mnist: DatasetStatus = field(default_factory=DatasetStatus)
    simulates: bool = False  # has a simulated accelerator, which isn't in `devices`
    why_not: str = ""  # why the simulated accelerator doesn't work; "" if it does

    @property
    def has_accelerator(self) -> bool:
        """Whether torch can train on something else than the CPU."""
        return self.devices[0].backend != "CPU"


def now() -> str:
    """The time as ISO 8601, to the second, in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")
