"""Why torch trains on what it trains on: from facts about a machine to a diagnosis.

No torch here and no looking around: `core.machine.facts` collects, this file concludes.
So every cause of "no GPU" can be tested on any machine.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

SELECTOR = "https://pytorch.org/get-started/locally/"
WHEELS = "https://download.pytorch.org/whl"
NVIDIA_DRIVERS = "https://www.nvidia.com/drivers"
CONTAINER_TOOLKIT = (
    "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/"
    "install-guide.html"
)
WSL_GUIDE = "https://docs.nvidia.com/cuda/wsl-user-guide/index.html"
ROCM_GPUS = (
    "https://rocm.docs.amd.com/projects/install-on-linux/en/latest/reference/"
    "system-requirements.html"
)
XPU_GUIDE = "https://docs.pytorch.org/docs/stable/notes/get_start_xpu.html"

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


@dataclass(frozen=True)
class VisibleDevice:
    """A device of the accelerator, as torch sees it."""

    name: str
    architecture: str = ""  # "sm_90", "gfx1100"; "" where there is no such name
    complaint: str = ""  # what torch said when asked to compute on it; "" if it did


@dataclass(frozen=True)
class Facts:
    """What a machine says of itself. Whatever is unknown or not there is empty."""

    system: str = "Linux"  # as platform.system: "Linux", "Darwin", "Windows"
    machine: str = "x86_64"  # as platform.machine
    torch: str = ""  # version
    cuda: str = ""  # version that torch was built with
    hip: str = ""  # likewise, for ROCm
    xpu: str = ""  # likewise, of Intel's toolkit
    mps: bool = False  # whether torch was built with it
    architectures: tuple[str, ...] = ()  # that this build has GPU code for
    releases: tuple[tuple[str, tuple[str, ...]], ...] = ()  # wheels: CUDA, its codes
    accelerator: str = ""  # type of the device that torch says it can use
    seen: tuple[VisibleDevice, ...] = ()  # the devices of that type
    complaint: str = ""  # what torch said when asked for an accelerator it can't use
    vendors: tuple[str, ...] = ()  # of the GPUs on the bus: "NVIDIA", "AMD", "Intel"
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
        """The platform that this torch was built for."""
        if self.hip:
            return "ROCm"
        if self.cuda:
            return "CUDA"
        if self.xpu:
            return "XPU"
        return "MPS" if self.mps else "CPU"

    @property
    def has_nvidia(self) -> bool:
        return bool("NVIDIA" in self.vendors or self.nvidia_gpus)


@dataclass(frozen=True)
class Diagnosis:
    """What to tell a person; the texts are Markdown."""

    cause: str  # name of the function that found it
    state: Literal["accelerator", "cpu", "broken"]
    verdict: str  # one sentence: what is trained on, and why
    why: str
    way_out: str
    command: str = ""  # to be pasted into a terminal; "" where none helps


# An accelerator is there


def works(facts: Facts) -> Diagnosis | None:
    """An accelerator is there, and it computes."""
    if not facts.accelerator or any(each.complaint for each in facts.seen[:1]):
        return None
    kind = "MPS" if facts.accelerator == "mps" else facts.build
    first = _name(facts.seen[0]) if facts.seen else kind
    why = (
        f"{_torch(facts)} was built for {kind}, the driver answers, and a small "
        "computation on the device gave the right result just now."
    )
    if len(facts.seen) > 1:
        why += (
            f" torch sees {len(facts.seen)} devices. A process computes on the first, "
            f'`"{facts.accelerator}:0"`, unless you name another; this app gives each '
            "NVIDIA GPU a training worker, and a run takes the first that is free."
        )
    failing = [each for each in facts.seen if each.complaint]
    if failing:
        names = ", ".join(_name(each) for each in failing)
        why += f" Not all of them compute, though: {names}."
    hidden = len(facts.nvidia_gpus) - len(facts.seen)
    setting = _setting(facts, "CUDA")
    if kind == "CUDA" and setting and hidden > 0:
        why += f" {_setting_text(setting)} hides {hidden} more."
    return Diagnosis(
        "works",
        "accelerator",
        f"This machine trains on the {first}, because torch can use it through {kind}.",
        why,
        "Nothing needs repair: move the model once and every batch to "
        f'`torch.device("{facts.accelerator}")`, and watch the memory below while '
        "you train.",
    )


def architecture_missing(facts: Facts) -> Diagnosis | None:
    """torch sees the GPU, but this build has no code for its architecture."""
    first = facts.seen[0] if facts.seen else None
    if first is None or not first.complaint or not first.architecture:
        return None
    if not facts.architectures or runs_on(facts.architectures, first.architecture):
        return None
    codes = ", ".join(f"`{each}`" for each in facts.architectures)
    wheel = next(
        (
            release
            for release, architectures in reversed(facts.releases)
            if _version(release) and runs_on(architectures, first.architecture)
        ),
        "",
    )
    if facts.build == "ROCm":
        way, command = (
            f"Look the GPU up in [AMD's list]({ROCM_GPUS}). Where a close relative of "
            "it is supported, `HSA_OVERRIDE_GFX_VERSION` makes ROCm take it for that "
            "one, at your own risk.",
            "",
        )
    else:
        way = (
            "Install a build that has it. Older GPUs are dropped by newer CUDA "
            "versions, newer GPUs need newer ones: choose another CUDA version in "
            f"[PyTorch's selector]({SELECTOR})"
            + (f"; the one for CUDA {wheel} has code for it." if wheel else ".")
        )
        command = _pip(f"cu{wheel.replace('.', '')}") if wheel else ""
    return Diagnosis(
        "architecture_missing",
        "broken",
        f"torch sees the {_name(first)} but can't compute on it: this build has no "
        f"code for {_architecture(first.architecture)}.",
        f"`torch.cuda.is_available()` is True all the same. `torch.cuda.get_arch_list()"
        f"` has {codes}. When asked to compute, torch said: {_quote(first.complaint)}",
        way,
        command,
    )


def computation_failed(facts: Facts) -> Diagnosis | None:
    """torch says that a device can be used, yet it fails in computing on it."""
    first = facts.seen[0] if facts.seen else None
    if first is None or not first.complaint:
        return None
    return Diagnosis(
        "computation_failed",
        "broken",
        f"torch sees the {_name(first)}, but a first computation on it failed.",
        "`is_available()` is True, so the driver answers and lists it. When asked to "
        f"compute, torch said: {_quote(first.complaint)}",
        "Another program may hold the memory or the whole device: `nvidia-smi`, or "
        "`rocm-smi` for AMD, lists them. If nothing else is running, restart the "
        "machine, then update the driver.",
        "nvidia-smi" if facts.build == "CUDA" else "",
    )


# A Mac


def rosetta(facts: Facts) -> Diagnosis | None:
    """A Mac with Apple silicon, but Python is an x86 program."""
    if facts.system != "Darwin" or not facts.rosetta:
        return None
    return _cpu(
        "rosetta",
        "this Python is an x86 program that macOS translates",
        "The Mac has Apple silicon, but under Rosetta a program sees an Intel Mac, "
        "and MPS is not there for it.",
        "Install Python for arm64 (python.org, Homebrew in `/opt/homebrew`, or a conda "
        "for Apple silicon), and make a new virtual environment with it. Then "
        "`platform.machine()` answers `arm64`.",
        'python -c "import platform; print(platform.machine())"',
    )


def intel_mac(facts: Facts) -> Diagnosis | None:
    """A Mac with an Intel processor."""
    if facts.system != "Darwin" or facts.machine == "arm64":
        return None
    return _cpu(
        "intel_mac",
        "this Mac has an Intel processor, and torch uses Metal on Apple silicon only",
        "PyTorch publishes no builds for Intel Macs since version 2.3, and CUDA left "
        "macOS long before.",
        "Nothing is broken: everything here works on the CPU. For a GPU, use a Mac "
        "with Apple silicon, or a machine with an NVIDIA, AMD or Intel GPU.",
    )


def mps_not_built(facts: Facts) -> Diagnosis | None:
    """A Mac with Apple silicon, with a torch that was built without MPS."""
    if facts.system != "Darwin" or facts.mps:
        return None
    return _cpu(
        "mps_not_built",
        "this torch was built without MPS",
        "`torch.backends.mps.is_built()` is False. The builds on PyPI have MPS; this "
        "one comes from elsewhere, or was compiled without it.",
        "Install the build from PyPI.",
        "python -m pip install --force-reinstall torch torchvision",
    )


def macos_too_old(facts: Facts) -> Diagnosis | None:
    """A macOS that MPS does not run on any more.

    macOS 14 since torch 2.9 (pytorch/pytorch pull request 162921), 13 before
    (pull request 141182).
    """
    if facts.system != "Darwin" or not _version(facts.macos):
        return None
    least = 14 if _version(facts.torch) >= (2, 9) else 13
    if _version(facts.macos)[0] >= least:
        return None
    return _cpu(
        "macos_too_old",
        f"MPS in {_torch(facts)} needs macOS {least}, and this is {facts.macos}",
        "torch was built with MPS and says that it is not available. The message "
        f"that it gives may name another version: {_quote(facts.complaint)}",
        f"Update macOS to {least} or later; or, on macOS 13, stay with torch 2.8.",
        "sw_vers",
    )


def mps_unavailable(facts: Facts) -> Diagnosis | None:
    """MPS is built and macOS is new enough, and still it is not available."""
    if facts.system != "Darwin":
        return None
    return _cpu(
        "mps_unavailable",
        "torch was built with MPS, but macOS offers no Metal device to this process",
        "That is so in many virtual machines and on some build servers. torch said: "
        + _quote(facts.complaint),
        "Start the app in a terminal on the Mac itself, in the session of a user who "
        "is logged in, not in a virtual machine. The command lists the GPU if there "
        "is one.",
        "system_profiler SPDisplaysDataType",
    )


# A build that does not fit the GPU


def cpu_build(facts: Facts) -> Diagnosis | None:
    """There is a GPU, but torch was built for the CPU alone."""
    if facts.build != "CPU" or not _vendors(facts):
        return None
    vendor = _vendors(facts)[0]
    build = _build_for(vendor)
    why = (
        f"There is {_an(vendor)} GPU, and `torch.version.cuda`, `.hip` and `.xpu` are "
        "all None, so no driver can help."
    )
    if facts.system == "Windows" and vendor == "NVIDIA":
        why += " On Windows, `pip install torch` brings exactly this build."
    return _cpu(
        "cpu_build",
        f"torch was built without {build}",
        why,
        _install(facts, vendor),
        _install_command(facts, vendor),
    )


def other_build(facts: Facts) -> Diagnosis | None:
    """There is a GPU, but torch was built for another vendor's."""
    vendors = _vendors(facts)
    if facts.build == "CPU" or not vendors or _vendor_of(facts.build) in vendors:
        return None
    vendor = vendors[0]
    return _cpu(
        "other_build",
        f"torch was built for {facts.build}, and the GPU is {_an(vendor)} GPU",
        f"A build of torch knows one platform: {facts.build} is for GPUs of "
        f"{_vendor_of(facts.build)}, and {_an(vendor)} GPU needs {_build_for(vendor)}.",
        _install(facts, vendor),
        _install_command(facts, vendor),
    )


# CUDA


def wsl_without_driver(facts: Facts) -> Diagnosis | None:
    """WSL, where the driver is that of Windows, and it does not reach Linux."""
    if not facts.wsl or facts.build != "CUDA" or facts.nvidia_driver:
        return None
    return _cpu(
        "wsl_without_driver",
        "no NVIDIA driver of Windows reaches this Linux (WSL)",
        "Inside WSL the driver comes from Windows, through `/usr/lib/wsl/lib`. There "
        "is none there: Windows has no NVIDIA driver, an old one, or no NVIDIA GPU.",
        f"Update the driver in Windows ([NVIDIA]({NVIDIA_DRIVERS})), run the command "
        "in a Windows terminal, and open WSL again. Don't install a Linux driver "
        f"inside WSL ([guide]({WSL_GUIDE})).",
        "wsl --update",
    )


def not_passed_through(facts: Facts) -> Diagnosis | None:
    """A container on a machine with a GPU, which was started without it."""
    if not facts.container or facts.build != "CUDA":
        return None
    if not facts.has_nvidia or facts.nvidia_gpus:
        return None
    return _cpu(
        "not_passed_through",
        "this container was started without the GPU",
        "An NVIDIA GPU is on the bus of this machine, but the files of its driver are "
        "not in the container.",
        "Install the [NVIDIA Container Toolkit]"
        f"({CONTAINER_TOOLKIT}) on the host, and start the container with `--gpus all` "
        "(in Kubernetes: a limit of `nvidia.com/gpu: 1`). The command tests it, on "
        "the host.",
        "docker run --rm --gpus all ubuntu nvidia-smi",
    )


def no_driver(facts: Facts) -> Diagnosis | None:
    """An NVIDIA GPU is on the bus, but no driver answers for it."""
    if facts.build != "CUDA" or not facts.has_nvidia or facts.nvidia_driver:
        return None
    return _cpu(
        "no_driver",
        "there is an NVIDIA GPU, but no driver for it",
        "torch brings CUDA along, but never the driver. The GPU is on the bus and "
        f"NVML, the driver's library, does not answer. {_said(facts)}",
        f"Install the driver ([NVIDIA]({NVIDIA_DRIVERS}), or your distribution's "
        "package), restart the machine, and run the command. If the driver is "
        "installed: after a kernel update or with Secure Boot its module may not be "
        "loaded.",
        "nvidia-smi",
    )


def driver_too_old(facts: Facts) -> Diagnosis | None:
    """The NVIDIA driver is older than the CUDA version of this build allows.

    From CUDA 11 on, a driver runs every minor version of the major version that it
    knows: NVIDIA, "CUDA Compatibility", minor version compatibility.
    """
    if facts.build != "CUDA" or not _version(facts.driver_cuda):
        return None
    major = _version(facts.driver_cuda)[:1]
    if major >= _version(facts.cuda)[:1]:
        return None
    fitting = [each for each, _ in facts.releases if () < _version(each)[:1] <= major]
    way = (
        f"Update the driver ([NVIDIA]({NVIDIA_DRIVERS})), which is best. Or install a "
        f"torch that was built for CUDA {major[0]} "
        f"([selector]({SELECTOR}))"
    )
    return _cpu(
        "driver_too_old",
        f"{_driver(facts)} is too old for this torch",
        f"The driver runs programs up to CUDA {facts.driver_cuda}, and this torch was "
        f"built with CUDA {facts.cuda}. {_said(facts)}",
        way + (", with the command." if fitting else "."),
        _pip(f"cu{fitting[-1].replace('.', '')}") if fitting else "nvidia-smi",
    )


def hidden(facts: Facts) -> Diagnosis | None:
    """An environment variable hides the GPUs from this process."""
    if facts.build not in HIDING or _vendor_of(facts.build) not in _vendors(facts):
        return None
    setting = _setting(facts, facts.build)
    count = len(facts.nvidia_gpus) if facts.build == "CUDA" else 1
    if setting is None or not _hides(setting[1], max(1, count)):
        return None
    name = setting[0]
    return _cpu(
        "hidden",
        f"the variable `{name}` hides the GPU from torch",
        f"{_setting_text(setting)} is set where the app was started, and names none of "
        "the GPUs that are here. A value that does not exist hides those after it too.",
        "Unset it in that terminal, on Windows with "
        f"`Remove-Item Env:{name}`, or give it the number of a GPU, and start the app "
        "again. torch reads it once, when it first asks for a GPU: setting it later "
        "changes nothing.",
        f"unset {name}",
    )


def cuda_failed(facts: Facts) -> Diagnosis | None:
    """The driver is new enough and lists a GPU, and still CUDA does not start."""
    if facts.build != "CUDA" or not facts.has_nvidia:
        return None
    return _cpu(
        "cuda_failed",
        "CUDA does not start, although the driver is there",
        f"The NVIDIA driver runs CUDA {facts.driver_cuda or 'programs'}, "
        f"and torch was built with CUDA {facts.cuda}, so the versions fit. "
        f"{_said(facts)}",
        "Restart the machine: that helps after an update of the driver, and after a "
        "laptop slept. On servers with NVSwitch, the service `nvidia-fabricmanager` "
        "must be running, in the driver's version. Then run the command, and read its "
        "last lines.",
        "nvidia-smi",
    )


# ROCm and XPU


def no_kfd(facts: Facts) -> Diagnosis | None:
    """An AMD GPU and a torch for ROCm, but the driver's device file is not there."""
    if facts.build != "ROCm" or "AMD" not in facts.vendors:
        return None
    if facts.kfd or facts.system != "Linux":
        return None
    way = (
        "Start the container with `--device=/dev/kfd --device=/dev/dri`."
        if facts.container
        else "Install AMD's kernel driver (`amdgpu-dkms`) as its guide says, if the "
        f"GPU is in [AMD's list]({ROCM_GPUS}), and restart the machine."
    )
    return _cpu(
        "no_kfd",
        "the file `/dev/kfd`, by which ROCm reaches the driver, is not here",
        f"An AMD GPU is on the bus and torch was built for ROCm {facts.hip}. "
        f"{_said(facts)}",
        way,
        "ls -l /dev/kfd /dev/dri",
    )


def no_permission(facts: Facts) -> Diagnosis | None:
    """An AMD GPU with its driver, but this user may not use it."""
    if facts.build != "ROCm" or not facts.kfd or facts.kfd_readable:
        return None
    return _cpu(
        "no_permission",
        "this user may not open `/dev/kfd`, by which ROCm reaches the driver",
        "The driver is there; its files belong to the groups `render` and `video`.",
        "Add yourself to both groups with the command, log out, and log in again. In "
        "a container: `--group-add video --group-add render`.",
        "sudo usermod -a -G render,video $LOGNAME",
    )


def rocm_failed(facts: Facts) -> Diagnosis | None:
    """An AMD GPU with its driver, which ROCm does not take."""
    if facts.build != "ROCm" or "AMD" not in facts.vendors:
        return None
    return _cpu(
        "rocm_failed",
        "ROCm finds no GPU that it supports",
        "An AMD GPU is on the bus and its driver answers. ROCm supports some GPUs, "
        f"and few of those that are part of a processor. {_said(facts)}",
        f"Look yours up in [AMD's list]({ROCM_GPUS}). The command lists what ROCm "
        "sees, with names such as `gfx1100`.",
        "rocminfo",
    )


def xpu_without_driver(facts: Facts) -> Diagnosis | None:
    """An Intel GPU and a torch for XPU, but no driver that answers."""
    if facts.build != "XPU" or "Intel" not in facts.vendors:
        return None
    render = (
        " There is no `/dev/dri/renderD*`, so the kernel's driver is missing too."
        if facts.system == "Linux" and not facts.render_node
        else ""
    )
    return _cpu(
        "xpu_without_driver",
        "no Intel GPU answers through Level Zero, the driver that XPU needs",
        "torch brings Intel's libraries along, but never the driver, and it supports "
        f"Arc graphics and newer, not every Intel GPU.{render} {_said(facts)}",
        "See whether yours is supported, and install the driver as "
        f"[PyTorch's notes on Intel GPUs]({XPU_GUIDE}) say. On Linux you must be in "
        "the group `render`.",
        "sudo usermod -a -G render $LOGNAME" if facts.system == "Linux" else "",
    )


def no_gpu(facts: Facts) -> Diagnosis | None:
    """No GPU is here. Nothing is broken."""
    build = {
        "CPU": "torch was built for the CPU, which fits",
        "CUDA": f"torch was built with CUDA {facts.cuda} and would use an NVIDIA GPU",
        "ROCm": f"torch was built with ROCm {facts.hip} and would use an AMD GPU",
        "XPU": "torch was built with XPU and would use an Intel GPU",
        "MPS": "torch was built with MPS and would use Apple silicon",
    }[facts.build]
    return _cpu(
        "no_gpu",
        "it has no GPU that torch could use",
        "No GPU of NVIDIA, AMD or Intel shows on this machine, which is no fault: "
        f"{build}, and all lessons work on the CPU with the same code. {_said(facts)}",
        "To train on a GPU, start this app on a machine that has one, your own or a "
        "rented one: nothing in the code changes. If you know that one is built in, "
        "then it is switched off in the firmware, or not given to this container or "
        "virtual machine.",
    )


# In this order: each one may take for granted that those before it did not apply.
CAUSES: tuple[Callable[[Facts], Diagnosis | None], ...] = (
    works,
    architecture_missing,
    computation_failed,
    rosetta,
    intel_mac,
    mps_not_built,
    macos_too_old,
    mps_unavailable,
    cpu_build,
    other_build,
    wsl_without_driver,
    not_passed_through,
    no_driver,
    driver_too_old,
    no_kfd,
    no_permission,
    hidden,
    cuda_failed,
    rocm_failed,
    xpu_without_driver,
    no_gpu,
)


def diagnose(facts: Facts) -> Diagnosis:
    """The first cause that applies; the last one always does."""
    found = (cause(facts) for cause in CAUSES)
    return next(each for each in found if each is not None)


def runs_on(built: tuple[str, ...], architecture: str) -> bool:
    """Whether code built for some architectures runs on one: "sm_86" on "sm_89".

    Machine code runs on devices of the same major version and at least the same minor
    one; code for a virtual architecture ("compute_90") on all later ones. From NVIDIA's
    CUDA programming guide, "Application compatibility". AMD's names must be the same.
    """
    kind, number = _split(architecture)
    if kind != "sm":
        return architecture in built
    for each in built:
        other, least = _split(each)
        if other == "compute" and number >= least:
            return True
        if other == "sm" and number // 10 == least // 10 and number >= least:
            return True
    return False


def _split(architecture: str) -> tuple[str, int]:
    """("sm", 90) for "sm_90a"; ("gfx1100", 0) where there is no such number."""
    kind, _, number = architecture.partition("_")
    digits = number.rstrip("af")
    return (kind, int(digits)) if digits.isdecimal() else (architecture, 0)


def _architecture(name: str) -> str:
    kind, number = _split(name)
    if kind == "sm":
        return f"compute capability {number // 10}.{number % 10}"
    return f"its architecture {name}"


def _cpu(
    cause: str, reason: str, why: str, way_out: str, command: str = ""
) -> Diagnosis:
    verdict = f"This machine trains on the CPU, because {reason}."
    return Diagnosis(cause, "cpu", verdict, why.strip(), way_out, command)


def _version(text: str) -> tuple[int, ...]:
    """(2, 15, 0) for "2.15.0+cu132"; as far as there are numbers."""
    numbers = []
    for part in text.partition("+")[0].split("."):
        if not part.isdecimal():
            break
        numbers.append(int(part))
    return tuple(numbers)


def _vendors(facts: Facts) -> list[str]:
    """Vendors of the GPUs that are here, those that torch serves best first."""
    here = {*facts.vendors, *(["NVIDIA"] if facts.nvidia_gpus else [])}
    return [each for each in ("NVIDIA", "AMD", "Intel") if each in here]


def _vendor_of(build: str) -> str:
    return {"CUDA": "NVIDIA", "ROCm": "AMD", "XPU": "Intel", "MPS": "Apple"}[build]


def _build_for(vendor: str) -> str:
    return {"NVIDIA": "CUDA", "AMD": "ROCm", "Intel": "XPU"}[vendor]


def _an(vendor: str) -> str:
    return f"an {vendor}"


def _install(facts: Facts, vendor: str) -> str:
    """How to get a build for that vendor."""
    if vendor == "NVIDIA":
        driver = facts.driver_cuda
        return (
            f"Install a build with CUDA: [PyTorch's selector]({SELECTOR}) has the "
            "command for your system. "
            + (
                f"Your driver runs CUDA {driver}: take that version or an older one."
                if driver
                else "Install NVIDIA's driver too; torch does not bring it."
            )
        )
    guide, which = (
        (ROCM_GPUS, "AMD's list of supported GPUs")
        if vendor == "AMD"
        else (XPU_GUIDE, "the list of supported Intel GPUs")
    )
    return (
        f"Look the GPU up in [{which}]({guide}): many that are part of a processor are "
        f"not in it, and then the CPU is the right device. If it is, take the "
        f"{_build_for(vendor)} build from [PyTorch's selector]({SELECTOR})."
    )


def _install_command(facts: Facts, vendor: str) -> str:
    if vendor == "Intel":
        return _pip("xpu")
    if vendor == "AMD":
        return ""  # its address changes with every version of ROCm
    driver = _version(facts.driver_cuda)
    known = [each for each, _ in facts.releases if _version(each)]
    fitting = [each for each in known if not driver or _version(each) <= driver]
    return _pip(f"cu{fitting[-1].replace('.', '')}") if fitting else ""


def _pip(index: str) -> str:
    return (
        "python -m pip install --force-reinstall torch torchvision "
        f"--index-url {WHEELS}/{index}"
    )


def _setting(facts: Facts, build: str) -> tuple[str, str] | None:
    """The first variable that is set of those that hide GPUs from such a build."""
    settings = dict(facts.variables)
    return next(
        ((name, settings[name]) for name in HIDING[build] if name in settings), None
    )


def _setting_text(setting: tuple[str, str]) -> str:
    return f"`{setting[0]}={_plain(setting[1])}`"


def _hides(value: str, count: int) -> bool:
    """Whether the first name in a list of devices is none of `count` devices.

    Where torch sees no GPU, a name that is not a number was not found either.
    """
    first = value.partition(",")[0].partition(".")[0].strip()
    return not first.isdecimal() or int(first) >= count


def _said(facts: Facts) -> str:
    return f"torch said: {_quote(facts.complaint)}" if facts.complaint else ""


def _quote(text: str) -> str:
    """As code, so that nothing in it is taken for Markdown."""
    return f"`{_plain(text)}`" if text.strip() else "nothing."


def _name(device: VisibleDevice) -> str:
    return _plain(device.name) or "GPU"


def _torch(facts: Facts) -> str:
    return f"torch {_plain(facts.torch)}".strip()


def _driver(facts: Facts) -> str:
    return f"the NVIDIA driver {_plain(facts.nvidia_driver)}".strip()


def _plain(text: str) -> str:
    return " ".join(text.replace("`", "'").split())
