"""Facts about a machine and their diagnosis: plain data, without torch."""

from dataclasses import dataclass
from typing import Literal

# Variables that hide GPUs from a build: NVIDIA's CUDA programming guide, AMD's "GPU
# isolation techniques", Intel's Level Zero specification.
HIDING = {
    "CUDA": ("CUDA_VISIBLE_DEVICES",),
    "ROCm": (
        "HIP_VISIBLE_DEVICES",
        "ROCR_VISIBLE_DEVICES",
        "CUDA_VISIBLE_DEVICES",
        "GPU_DEVICE_ORDINAL",
    ),
    "XPU": ("ZE_AFFINITY_MASK",),
}
VENDORS = {"CUDA": "NVIDIA", "ROCm": "AMD", "XPU": "Intel", "MPS": "Apple"}


@dataclass(frozen=True)
class VisibleDevice:
    name: str
    architecture: str = ""  # "sm_90", "gfx1100"; "" where there is no such name
    complaint: str = ""  # torch's error when asked to compute on it; "" if it did


@dataclass(frozen=True)
class Facts:
    """Facts about a machine. A fact that is unknown or absent is empty."""

    system: str = "Linux"  # as platform.system: "Linux", "Darwin", "Windows"
    machine: str = "x86_64"  # as platform.machine
    torch: str = ""  # version
    cuda: str = ""  # version that torch was built with
    hip: str = ""  # likewise, for ROCm
    xpu: str = ""  # likewise, of Intel's toolkit
    mps: bool = False  # whether torch was built with it
    architectures: tuple[str, ...] = ()  # supported by the GPU code of this build
    releases: tuple[tuple[str, tuple[str, ...]], ...] = ()  # wheels: CUDA, its codes
    accelerator: str = ""  # type of the device that torch says it can use
    seen: tuple[VisibleDevice, ...] = ()  # the devices of that type
    complaint: str = ""  # torch's error for an accelerator that it can't use
    vendors: tuple[str, ...] = ()  # GPU makers on the bus: "NVIDIA", "AMD", "Intel"
    nvidia_gpus: tuple[str, ...] = ()  # names that the NVIDIA driver lists
    nvidia_driver: str = ""  # version
    driver_cuda: str = ""  # newest CUDA version that this driver runs
    kfd: bool = False  # /dev/kfd, by which ROCm talks to the driver
    kfd_readable: bool = False  # by the user that runs torch
    render_node: bool = False  # /dev/dri/renderD*, by which Intel and AMD are reached
    container: bool = False
    wsl: bool = False
    rosetta: bool = False  # an x86 Python, translated, on a Mac with Apple silicon
    macos: str = ""  # version
    variables: tuple[tuple[str, str], ...] = ()  # those of HIDING that are set

    @property
    def build(self) -> str:
        """The platform of torch's build: "CUDA", "ROCm", "XPU", "MPS" or "CPU"."""
        built = {"ROCm": self.hip, "CUDA": self.cuda, "XPU": self.xpu, "MPS": self.mps}
        return next((build for build, known in built.items() if known), "CPU")

    @property
    def vendor(self) -> str:
        """The maker of the GPUs that torch was built for; "" for a CPU build."""
        return VENDORS.get(self.build, "")

    @property
    def present(self) -> list[str]:
        """Vendors of this machine's GPUs, those that torch serves best first."""
        here = {*self.vendors, *(["NVIDIA"] if self.nvidia_gpus else [])}
        return [each for each in ("NVIDIA", "AMD", "Intel") if each in here]

    @property
    def first(self) -> VisibleDevice | None:
        """The device that a process computes on by default."""
        return self.seen[0] if self.seen else None

    @property
    def setting(self) -> tuple[str, str] | None:
        """Name and value of the first variable that hides GPUs from this build."""
        values = dict(self.variables)
        names = HIDING.get(self.build, ())
        return next(((name, values[name]) for name in names if name in values), None)


@dataclass(frozen=True)
class Diagnosis:
    """Texts for the page, in Markdown."""

    state: Literal["accelerator", "cpu", "broken"]
    verdict: str  # one sentence: what is trained on, and why
    why: str
    way_out: str
    command: str = ""  # to be pasted into a terminal; "" where none helps
    cause: str = ""  # name of the function that found it: `diagnose` fills it in


@dataclass(frozen=True)
class DeviceDetails:
    """What doesn't change while the app runs; None if unknown."""

    device: str  # "cuda:0"
    device_name: str
    backend: str
    total_bytes: int | None
    compute_capability: str | None = None  # "9.0"
    architecture: str | None = None  # "gfx1100"
    multiprocessors: int | None = None
    cores: int | None = None  # without hyper-threading
    logical_cores: int | None = None
    threads: int | None = None  # used for training
    fast_formats: list[str] | None = None  # multiplied faster than float32
    lacks: list[str] | None = None  # formats that it can't compute in
    vectors: list[str] | None = None  # instructions of the CPU
    kernels: str | None = None  # instruction set that torch's CPU code uses
    blas: str | None = None
    driver: str | None = None
    runtime: str | None = None
    shared_memory: bool | None = None  # with the CPU


@dataclass(frozen=True)
class DeviceLoad:
    """How full and how busy a device is now; None if unknown."""

    device: str
    free_bytes: int | None
    total_bytes: int | None
    busy_percent: int | None = None  # share of the last moment in which a kernel ran
    celsius: int | None = None

    @property
    def used_bytes(self) -> int | None:
        if self.free_bytes is None or self.total_bytes is None:
            return None
        return self.total_bytes - self.free_bytes
