"""Why there is no MPS on a Mac."""

from core.machine.causes import wording
from core.machine.results import Diagnosis, Facts


def rosetta(facts: Facts) -> Diagnosis | None:
    """A Mac with Apple silicon, but Python is an x86 program."""
    if facts.system != "Darwin" or not facts.rosetta:
        return None
    return Diagnosis.on_cpu(
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
    return Diagnosis.on_cpu(
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
    return Diagnosis.on_cpu(
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
    least = 14 if wording.version(facts.torch) >= (2, 9) else 13
    if facts.system != "Darwin" or not () < wording.version(facts.macos) < (least,):
        return None
    return Diagnosis.on_cpu(
        f"MPS in {wording.torch_of(facts)} needs macOS {least}, and this is "
        f"{facts.macos}",
        "torch was built with MPS and says that it is not available. The message "
        f"that it gives may name another version: {wording.quote(facts.complaint)}",
        f"Update macOS to {least} or later; or, on macOS 13, stay with torch 2.8.",
        "sw_vers",
    )


def mps_unavailable(facts: Facts) -> Diagnosis | None:
    """MPS is built and macOS is new enough, and still it is not available."""
    if facts.system != "Darwin":
        return None
    return Diagnosis.on_cpu(
        "torch was built with MPS, but macOS offers no Metal device to this process",
        "That is so in many virtual machines and on some build servers. torch said: "
        + wording.quote(facts.complaint),
        "Start the app in a terminal on the Mac itself, in the session of a user who "
        "is logged in, not in a virtual machine. The command lists the GPU if there "
        "is one.",
        "system_profiler SPDisplaysDataType",
    )
