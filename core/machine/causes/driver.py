"""Build and GPU fit, and what is between them fails: drivers, permissions, settings."""

from core.machine.causes import wording
from core.machine.results import Diagnosis, Facts

NVIDIA_DRIVERS = "https://www.nvidia.com/drivers"
CONTAINER_TOOLKIT = (
    "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/"
    "install-guide.html"
)
WSL_GUIDE = "https://docs.nvidia.com/cuda/wsl-user-guide/index.html"


def wsl_without_driver(facts: Facts) -> Diagnosis | None:
    """WSL, where the driver is that of Windows, and it does not reach Linux."""
    if not facts.wsl or facts.build != "CUDA" or facts.nvidia_driver:
        return None
    return Diagnosis.on_cpu(
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
    if "NVIDIA" not in facts.present or facts.nvidia_gpus:
        return None
    return Diagnosis.on_cpu(
        "this container was started without the GPU",
        "An NVIDIA GPU is on the bus of this machine, but the files of its driver are "
        "not in the container.",
        f"Install the [NVIDIA Container Toolkit]({CONTAINER_TOOLKIT}) on the host, and "
        "start the container with `--gpus all` (in Kubernetes: a limit of "
        "`nvidia.com/gpu: 1`). The command tests it, on the host.",
        "docker run --rm --gpus all ubuntu nvidia-smi",
    )


def no_driver(facts: Facts) -> Diagnosis | None:
    """An NVIDIA GPU is on the bus, but no driver answers for it."""
    if facts.build != "CUDA" or "NVIDIA" not in facts.present or facts.nvidia_driver:
        return None
    return Diagnosis.on_cpu(
        "there is an NVIDIA GPU, but no driver for it",
        "torch brings CUDA along, but never the driver. The GPU is on the bus and "
        f"NVML, the driver's library, does not answer. {wording.said(facts)}",
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
    if facts.build != "CUDA" or not wording.version(facts.driver_cuda):
        return None
    major = wording.version(facts.driver_cuda)[:1]
    if major >= wording.version(facts.cuda)[:1]:
        return None
    wheel = wording.newest_release(facts, lambda each, _: each[:1] <= major)
    driver = f"the NVIDIA driver {wording.plain(facts.nvidia_driver)}".strip()
    way = (
        f"Update the driver ([NVIDIA]({NVIDIA_DRIVERS})), which is best. Or install a "
        f"torch that was built for CUDA {major[0]} ([selector]({wording.SELECTOR}))"
    )
    return Diagnosis.on_cpu(
        f"{driver} is too old for this torch",
        f"The driver runs programs up to CUDA {facts.driver_cuda}, and this torch was "
        f"built with CUDA {facts.cuda}. {wording.said(facts)}",
        way + (", with the command." if wheel else "."),
        wording.install_release(wheel) or "nvidia-smi",
    )


def hidden(facts: Facts) -> Diagnosis | None:
    """An environment variable hides the GPUs from this process."""
    if facts.vendor not in facts.present or facts.setting is None:
        return None
    name, value = facts.setting
    # Where torch sees no GPU, a name that is not a number was not found either.
    first = value.partition(",")[0].partition(".")[0].strip()
    count = len(facts.nvidia_gpus) if facts.build == "CUDA" else 1
    if first.isdecimal() and int(first) < max(1, count):
        return None
    return Diagnosis.on_cpu(
        f"the variable `{name}` hides the GPU from torch",
        f"{wording.shown(facts.setting)} is set where the app was started, and names "
        "none of the GPUs that are here. A value that does not exist hides those after "
        "it too.",
        f"Unset it in that terminal, on Windows with `Remove-Item Env:{name}`, or give "
        "it the number of a GPU, and start the app again. torch reads it once, when it "
        "first asks for a GPU: setting it later changes nothing.",
        f"unset {name}",
    )


def cuda_failed(facts: Facts) -> Diagnosis | None:
    """The driver is new enough and lists a GPU, and still CUDA does not start."""
    if facts.build != "CUDA" or "NVIDIA" not in facts.present:
        return None
    return Diagnosis.on_cpu(
        "CUDA does not start, although the driver is there",
        f"The NVIDIA driver runs CUDA {facts.driver_cuda or 'programs'}, and torch was "
        f"built with CUDA {facts.cuda}, so the versions fit. {wording.said(facts)}",
        "Restart the machine: that helps after an update of the driver, and after a "
        "laptop slept. On servers with NVSwitch, the service `nvidia-fabricmanager` "
        "must be running, in the driver's version. Then run the command, and read its "
        "last lines.",
        "nvidia-smi",
    )


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
        f"GPU is in [AMD's list]({wording.ROCM_GPUS}), and restart the machine."
    )
    return Diagnosis.on_cpu(
        "the file `/dev/kfd`, by which ROCm reaches the driver, is not here",
        f"An AMD GPU is on the bus and torch was built for ROCm {facts.hip}. "
        f"{wording.said(facts)}",
        way,
        "ls -l /dev/kfd /dev/dri",
    )


def no_permission(facts: Facts) -> Diagnosis | None:
    """An AMD GPU with its driver, but this user may not use it."""
    if facts.build != "ROCm" or not facts.kfd or facts.kfd_readable:
        return None
    return Diagnosis.on_cpu(
        "this user may not open `/dev/kfd`, by which ROCm reaches the driver",
        "The driver is there; its files belong to the groups `render` and `video`.",
        "Add yourself to both groups with the command, log out, and log in again. In "
        "a container: `--group-add video --group-add render`.",
        "sudo usermod -a -G render,video $LOGNAME",
    )


def rocm_failed(facts: Facts) -> Diagnosis | None:
    """An AMD GPU with its driver, which ROCm doesn't support."""
    if facts.build != "ROCm" or "AMD" not in facts.vendors:
        return None
    return Diagnosis.on_cpu(
        "ROCm finds no GPU that it supports",
        "An AMD GPU is on the bus and its driver answers. ROCm supports some GPUs, "
        f"and few of those that are part of a processor. {wording.said(facts)}",
        f"Look yours up in [AMD's list]({wording.ROCM_GPUS}). The command lists what "
        "ROCm sees, with names such as `gfx1100`.",
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
    return Diagnosis.on_cpu(
        "no Intel GPU answers through Level Zero, the driver that XPU needs",
        "torch brings Intel's libraries along, but never the driver, and it supports "
        f"Arc graphics and newer, not every Intel GPU.{render} {wording.said(facts)}",
        "See whether yours is supported, and install the driver as [PyTorch's notes on "
        f"Intel GPUs]({wording.XPU_GUIDE}) say. On Linux you must be in the group "
        "`render`.",
        "sudo usermod -a -G render $LOGNAME" if facts.system == "Linux" else "",
    )
