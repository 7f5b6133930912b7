"""Facts about a machine and their diagnosis: plain data, without torch."""

from dataclasses import dataclass
from typing import Literal

# Environment variables that hide GPUs from a build of torch. Sources: NVIDIA's CUDA
# programming guide, AMD's "GPU isolation techniques", Intel's Level Zero specification.
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
VARIABLES = sorted({name for names in HIDING.values() for name in names})
VENDORS = {"CUDA": "NVIDIA", "ROCm": "AMD", "XPU": "Intel", "MPS": "Apple"}


@dataclass(frozen=True)
class VisibleDevice:
    name: str
    architecture: str = ""  # "sm_90" (NVIDIA) or "gfx1100" (AMD); otherwise ""
    complaint: str = ""  # torch's error in computing on the device; "" without an error


@dataclass(frozen=True)
class Facts:
    """Facts about a machine. A fact that is unknown or absent is empty."""

    system: str = "Linux"  # platform.system(): "Linux", "Darwin", "Windows"
    machine: str = "x86_64"  # platform.machine()
    torch: str = ""  # torch's version
    cuda: str = ""  # the CUDA version that torch was built with
    hip: str = ""  # the HIP version that torch was built with, for ROCm
    xpu: str = ""  # the version of Intel's toolkit that torch was built with
    mps: bool = False  # whether torch was built with MPS
    # The GPU architectures that this build of torch has code for.
    architectures: tuple[str, ...] = ()
    # PyTorch's wheels: the CUDA version, and the architectures that the wheel runs on.
    releases: tuple[tuple[str, tuple[str, ...]], ...] = ()
    accelerator: str = ""  # type of the device that torch says it can use: "cuda"
    seen: tuple[VisibleDevice, ...] = ()  # the devices of that type
    # torch's error if torch was built for an accelerator that torch can't use
    complaint: str = ""
    vendors: tuple[str, ...] = ()  # makers of all GPUs in the machine: "NVIDIA", ...
    nvidia_gpus: tuple[str, ...] = ()  # names of the GPUs that the NVIDIA driver lists
    nvidia_driver: str = ""  # the driver's version
    driver_cuda: str = ""  # the newest CUDA version that this driver runs
    kfd: bool = False  # whether /dev/kfd exists, by which ROCm talks to the driver
    kfd_readable: bool = False  # whether the user that runs torch may use /dev/kfd
    render_node: bool = False  # whether /dev/dri/renderD* exists, for Intel and AMD
    container: bool = False
    wsl: bool = False
    rosetta: bool = False  # whether Python is an x86 program on Apple silicon
    macos: str = ""  # the version of macOS
    # Name and value of each environment variable of HIDING that is set.
    variables: tuple[tuple[str, str], ...] = ()

    @property
    def build(self) -> str:
        """The platform of torch's build: "CUDA", "ROCm", "XPU", "MPS" or "CPU"."""
        builds = {"ROCm": self.hip, "CUDA": self.cuda, "XPU": self.xpu, "MPS": self.mps}
        return next((build for build, version in builds.items() if version), "CPU")

    @property
    def vendor(self) -> str:
        """The maker of the GPUs that torch was built for; "" for a CPU build."""
        return VENDORS.get(self.build, "")

    @property
    def present(self) -> list[str]:
        """Vendors of this machine's GPUs; the one that torch supports best is first."""
        present = {*self.vendors, *(["NVIDIA"] if self.nvidia_gpus else [])}
        return [vendor for vendor in ("NVIDIA", "AMD", "Intel") if vendor in present]

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
    """Why torch uses a device or can't use it: texts for the page, in Markdown."""

    state: Literal["accelerator", "cpu", "broken"]
    verdict: str  # one sentence: the device that torch trains on, and why
    why: str
    way_out: str
    command: str = ""  # a shell command that helps; "" if there is none
    cause: str = ""  # the name of the cause's function in `diagnosis`

    @property
    def unused_gpu(self) -> bool:
        """Whether there is a GPU that torch could use, but can't.

        In WSL, nothing shows a GPU to Linux unless its driver responds.
        """
        others = ("no_gpu", "intel_mac", "wsl_without_driver")
        return self.state != "accelerator" and self.cause not in others
