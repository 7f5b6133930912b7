"""The build of torch does not fit the GPU, or there is no GPU to fit."""

from core.machine.causes import wording
from core.machine.results import VENDORS, Diagnosis, Facts

BUILDS = {vendor: build for build, vendor in VENDORS.items()}


def cpu_build(facts: Facts) -> Diagnosis | None:
    """There is a GPU, but torch was built for the CPU alone."""
    if facts.build != "CPU" or not facts.present:
        return None
    vendor = facts.present[0]
    why = (
        f"There is an {vendor} GPU, and `torch.version.cuda`, `.hip` and `.xpu` are "
        "all None, so no driver can help."
    )
    if facts.system == "Windows" and vendor == "NVIDIA":
        why += " On Windows, `pip install torch` brings exactly this build."
    reason = f"torch was built without {BUILDS[vendor]}"
    return Diagnosis.on_cpu(reason, why, *_install(facts, vendor))


def other_build(facts: Facts) -> Diagnosis | None:
    """There is a GPU, but torch was built for another vendor's."""
    if facts.build == "CPU" or not facts.present or facts.vendor in facts.present:
        return None
    vendor = facts.present[0]
    return Diagnosis.on_cpu(
        f"torch was built for {facts.build}, and the GPU is an {vendor} GPU",
        f"A build of torch knows one platform: {facts.build} is for GPUs of "
        f"{facts.vendor}, and an {vendor} GPU needs {BUILDS[vendor]}.",
        *_install(facts, vendor),
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
    return Diagnosis.on_cpu(
        "it has no GPU that torch could use",
        "There is no sign of an NVIDIA, AMD, or Intel GPU here. That's fine: "
        f"{build}, and all lessons work on the CPU with the same code."
        f"\n\n{wording.said(facts)}".rstrip(),
        "To train on a GPU, run this app on a machine that has one, your own or a "
        "rented one. You don't have to change any code. If you're sure that this one "
        "has a GPU, it may be turned off in the firmware, or this container or virtual "
        "machine may not have been given access to it.",
    )


def _install(facts: Facts, vendor: str) -> tuple[str, str]:
    """How to get a build for that vendor, and the command, where there is one."""
    if vendor == "NVIDIA":
        driver = wording.version(facts.driver_cuda)
        wheel = wording.newest_release(facts, lambda it, _: not driver or it <= driver)
        way = (
            f"Your driver runs CUDA {facts.driver_cuda}: take that version or an older "
            "one."
            if facts.driver_cuda
            else "Install NVIDIA's driver too; torch does not bring it."
        )
        return (
            f"Install a build with CUDA: [PyTorch's selector]({wording.SELECTOR}) has "
            f"the command for your system. {way}",
            wording.install_release(wheel),
        )
    guide, which = {
        "AMD": (wording.ROCM_GPUS, "AMD's list of supported GPUs"),
        "Intel": (wording.XPU_GUIDE, "the list of supported Intel GPUs"),
    }[vendor]
    return (
        f"Look the GPU up in [{which}]({guide}): many that are part of a processor are "
        "not in it, and then the CPU is the right device. If it is, take the "
        f"{BUILDS[vendor]} build from [PyTorch's selector]({wording.SELECTOR}).",
        # The address of ROCm's builds changes with every version of it.
        wording.install("xpu") if vendor == "Intel" else "",
    )
