"""torch sees an accelerator: it computes, or it does not."""

from core.machine.causes import wording
from core.machine.results import Diagnosis, Facts


def works(facts: Facts) -> Diagnosis | None:
    """An accelerator is there, and it computes."""
    if not facts.accelerator or (facts.first and facts.first.complaint):
        return None
    kind = "MPS" if facts.accelerator == "mps" else facts.build
    first = wording.name_of(facts.first) if facts.first else kind
    why = (
        f"{wording.torch_of(facts)} was built for {kind}, the driver answers, and a "
        "small computation on the device gave the right result just now."
    )
    if len(facts.seen) > 1:
        why += (
            f" torch sees {len(facts.seen)} devices. A process computes on the first, "
            f'`"{facts.accelerator}:0"`, unless you name another; this app gives each '
            "NVIDIA GPU a training worker, and a run takes the first that is free."
        )
    failing = ", ".join(wording.name_of(it) for it in facts.seen if it.complaint)
    if failing:
        why += f" Not all of them compute, though: {failing}."
    hidden = len(facts.nvidia_gpus) - len(facts.seen)
    if kind == "CUDA" and facts.setting and hidden > 0:
        why += f" {wording.shown(facts.setting)} hides {hidden} more."
    return Diagnosis(
        "accelerator",
        f"This machine trains on the {first}, because torch can use it through {kind}.",
        why,
        "Nothing needs repair: move the model once and every batch to "
        f'`torch.device("{facts.accelerator}")`, and watch the memory below while '
        "you train.",
    )


def architecture_missing(facts: Facts) -> Diagnosis | None:
    """torch sees the GPU, but this build has no code for its architecture."""
    first = facts.first
    if first is None or not first.complaint or not first.architecture:
        return None
    if not facts.architectures or runs_on(facts.architectures, first.architecture):
        return None
    codes = ", ".join(f"`{each}`" for each in facts.architectures)
    kind, number = _split(first.architecture)
    capability = f"compute capability {number // 10}.{number % 10}"
    missing = capability if kind == "sm" else f"its architecture {first.architecture}"
    wheel = ""
    if facts.build == "ROCm":
        way = (
            f"Look the GPU up in [AMD's list]({wording.ROCM_GPUS}). Where a close "
            "relative of it is supported, `HSA_OVERRIDE_GFX_VERSION` makes ROCm take "
            "it for that one, at your own risk."
        )
    else:
        wheel = wording.newest_release(
            facts, lambda _, built: runs_on(built, first.architecture)
        )
        way = (
            "Install a build that has it. Older GPUs are dropped by newer CUDA "
            "versions, newer GPUs need newer ones: choose another CUDA version in "
            f"[PyTorch's selector]({wording.SELECTOR})"
            + (f"; the one for CUDA {wheel} has code for it." if wheel else ".")
        )
    return Diagnosis(
        "broken",
        f"torch sees the {wording.name_of(first)} but can't compute on it: this build "
        f"has no code for {missing}.",
        "`torch.cuda.is_available()` is True all the same. "
        f"`torch.cuda.get_arch_list()` has {codes}. When asked to compute, torch said: "
        f"{wording.quote(first.complaint)}",
        way,
        wording.install_release(wheel),
    )


def computation_failed(facts: Facts) -> Diagnosis | None:
    """torch says that a device can be used, yet computing on it fails."""
    first = facts.first
    if first is None or not first.complaint:
        return None
    return Diagnosis(
        "broken",
        f"torch sees the {wording.name_of(first)}, but a first computation on it "
        "failed.",
        "`is_available()` is True, so the driver answers and lists it. When asked to "
        f"compute, torch said: {wording.quote(first.complaint)}",
        "Another program may hold the memory or the whole device: `nvidia-smi`, or "
        "`rocm-smi` for AMD, lists them. If nothing else is running, restart the "
        "machine, then update the driver.",
        "nvidia-smi" if facts.build == "CUDA" else "",
    )


def runs_on(built: tuple[str, ...], architecture: str) -> bool:
    """Whether code built for some architectures runs on one: "sm_86" on "sm_89".

    Machine code runs on devices of the same major version and at least the same minor
    one; code for a virtual architecture ("compute_90") on all later ones. From NVIDIA's
    CUDA programming guide, "Application compatibility". AMD's names must be the same.
    """
    kind, number = _split(architecture)
    if kind != "sm":
        return architecture in built
    return any(
        number >= least
        and (other == "compute" or (other == "sm" and number // 10 == least // 10))
        for other, least in map(_split, built)
    )


def _split(architecture: str) -> tuple[str, int]:
    """("sm", 90) for "sm_90a"; ("gfx1100", 0) where there is no such number."""
    kind, _, number = architecture.partition("_")
    digits = number.rstrip("af")
    return (kind, int(digits)) if digits.isdecimal() else (architecture, 0)
