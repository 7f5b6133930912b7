"""Find out from facts about a machine why torch uses a device or can't use it.

`facts` collects the facts, and this file only draws conclusions. So every cause of "no
GPU" can be tested on any machine. Each cause is a function. The cause's texts are in
words.toml under the function's name, and the page lists the docstrings.
"""

from collections.abc import Callable
from itertools import chain

from to_device import builds
from to_device.builds import kind_and_number, runs_on, version
from to_device.diagnose.machine import VENDORS, Diagnosis, Facts, VisibleDevice
from to_device.words import Words

words = Words(__file__)

# Whether a cause applies. A dict means yes, and fills the placeholders in the texts.
Answer = dict[str, str] | bool
Cause = Callable[[Facts], Answer]
BUILDS = {vendor: build for build, vendor in VENDORS.items()}


# Causes if torch sees an accelerator: the accelerator works, or it does not.


def works(facts: Facts) -> Answer:
    """An accelerator is available, and it can compute."""
    if not facts.accelerator or (facts.first and facts.first.complaint):
        return False
    count, accelerator, further = len(facts.seen), facts.accelerator, ""
    kind = "MPS" if accelerator == "mps" else facts.build
    if count > 1:
        further += words("causes.works.several", count=count, accelerator=accelerator)
    if failing := [_name(device) for device in facts.seen if device.complaint]:
        further += words("causes.works.failing", names=", ".join(failing))
    hidden = len(facts.nvidia_gpus) - count
    if kind == "CUDA" and facts.setting and hidden > 0:
        setting = _setting(facts.setting)
        further += words("causes.works.hidden", setting=setting, count=hidden)
    name = _name(facts.first) if facts.first else kind
    return {"name": name, "kind": kind, "further": further, "accelerator": accelerator}


def architecture_missing(facts: Facts) -> Answer:
    """torch sees the GPU, but this build has no code for its architecture."""
    first = facts.first
    if first is None or not first.complaint or not first.architecture:
        return False
    built, gpu = facts.architectures, first.architecture
    if not built or runs_on(built, gpu, version(facts.cuda)):
        return False
    codes = ", ".join(f"`{code}`" for code in facts.architectures)
    if facts.build == "ROCm":
        missing, command = f"its architecture {first.architecture}", ""
        advice = words("causes.architecture_missing.rocm", **LINKS)
    else:
        _, number = kind_and_number(gpu)
        missing = f"compute capability {number // 10}.{number % 10}"
        wheel = _wheel_for_driver(facts, gpu) or _newest_wheel(facts, gpu)
        command = _install(wheel)
        ending = f". The build for CUDA {wheel} supports your GPU." if wheel else "."
        driver, major = version(facts.driver_cuda), version(wheel)[:1]
        if driver and driver[:1] < major:
            # A newer torch may name a CUDA that the table doesn't know.
            needed = builds.table()["drivers"].get(str(major[0]))
            least = f" to {needed} or later" if needed else ""
            ending += words("causes.architecture_missing.newer_driver", least=least)
        advice = words("causes.architecture_missing.cuda", ending=ending, **LINKS)
    return {"missing": missing, "codes": codes, "advice": advice, "command": command}


def computation_failed(facts: Facts) -> Answer:
    """torch reports a usable device, but computing on it fails."""
    if facts.first is None or not facts.first.complaint:
        return False
    return {"command": "nvidia-smi" if facts.build == "CUDA" else ""}


# Causes on a Mac without MPS.


def rosetta(facts: Facts) -> Answer:
    """On a Mac with Apple silicon, Python is an x86 program."""
    return facts.system == "Darwin" and facts.rosetta


def intel_mac(facts: Facts) -> Answer:
    """The Mac has an Intel processor."""
    return facts.system == "Darwin" and facts.machine != "arm64"


def mps_not_built(facts: Facts) -> Answer:
    """On a Mac with Apple silicon, torch was built without MPS."""
    return facts.system == "Darwin" and not facts.mps


def macos_too_old(facts: Facts) -> Answer:
    """MPS doesn't run on this old version of macOS.

    MPS needs macOS 14 since torch 2.9 (pytorch/pytorch pull request 162921), and
    needed macOS 13 before (pull request 141182).
    """
    least = 14 if version(facts.torch) >= (2, 9) else 13
    if facts.system != "Darwin" or not () < version(facts.macos) < (least,):
        return False
    return {"least": str(least)}


def mps_unavailable(facts: Facts) -> Answer:
    """torch includes MPS and macOS is new enough, but MPS isn't available."""
    return facts.system == "Darwin"


# Causes if the build of torch does not fit the GPU.


def cpu_build(facts: Facts) -> Answer:
    """There is a GPU, but torch was built only for the CPU."""
    if facts.build != "CPU" or not facts.present:
        return False
    on_windows = facts.system == "Windows" and facts.present[0] == "NVIDIA"
    windows = words("causes.cpu_build.windows") if on_windows else ""
    return {"windows": windows, **_right_build(facts)}


def other_build(facts: Facts) -> Answer:
    """There is a GPU, but torch was built for another vendor's GPUs."""
    if facts.build == "CPU" or not facts.present or facts.vendor in facts.present:
        return False
    return _right_build(facts)


def _right_build(facts: Facts) -> dict[str, str]:
    """Words about the build that the first GPU needs, and the command to install it."""
    present = facts.present[0]
    if present == "NVIDIA":
        gpu = _gpu(facts)
        wheel = _wheel_for_driver(facts, gpu)
        which = "Also install the NVIDIA driver, because torch doesn't include it."
        if driver := version(facts.driver_cuda):
            which = (
                f"Your driver supports CUDA {facts.driver_cuda}, so choose a version "
                f"that begins with {driver[0]}, or an older one, that has code for "
                "your GPU."
            )
            if not wheel and (wheel := _newest_wheel(facts, gpu, lambda _: True)):
                least = builds.table()["drivers"][wheel.partition(".")[0]]
                which = (
                    f"Your driver supports CUDA {facts.driver_cuda}, and no current "
                    "build for it has code for your GPU. So first update the [NVIDIA "
                    f"driver]({{nvidia_drivers}}) to {least} or later."
                ).format(**LINKS)
        install = (
            "Install a build with CUDA: [PyTorch's selector]({selector}) has commands "
            "for the newest torch, and [another page]({previous}) for older ones. "
            "{which}"
        ).format(which=which, **LINKS)
        command = _install(wheel)
    else:
        # No command for AMD: the address of the builds changes with each ROCm version.
        install, command = words("install.amd", **LINKS), ""
        if present == "Intel":
            install = words("install.intel", **LINKS)
            command = words("install.pip", index="xpu")
    right = {"present": present, "needed": BUILDS[present]}
    return {**right, "install": install, "command": command}


# Causes if the build fits the GPU: drivers, permissions, and settings.


def wsl_without_driver(facts: Facts) -> Answer:
    """In WSL, Linux can't reach the Windows driver."""
    if not facts.wsl or facts.build != "CUDA" or facts.nvidia_driver:
        return False
    container = words("causes.wsl_without_driver.container")
    return {"container": container if facts.container else ""}


def not_passed_through(facts: Facts) -> Answer:
    """The machine has a GPU, but the container was started without it."""
    on_the_bus = facts.build == "CUDA" and "NVIDIA" in facts.present
    return facts.container and on_the_bus and not facts.nvidia_gpus


def no_driver(facts: Facts) -> Answer:
    """The machine has an NVIDIA GPU, but no driver for the GPU responds."""
    on_the_bus = facts.build == "CUDA" and "NVIDIA" in facts.present
    return on_the_bus and not facts.nvidia_driver


def driver_too_old(facts: Facts) -> Answer:
    """The NVIDIA driver is too old for this build's CUDA version.

    From CUDA 11 on, a driver runs every minor version of the major version that it
    knows: NVIDIA, "CUDA Compatibility", minor version compatibility.
    """
    major = version(facts.driver_cuda)[:1]
    if facts.build != "CUDA" or not major or major >= version(facts.cuda)[:1]:
        return False
    wheel = _wheel_for_driver(facts, _gpu(facts))
    ending = words(f"causes.driver_too_old.{'wheel' if wheel else 'no_wheel'}")
    return {
        "driver": f"the NVIDIA driver {_plain(facts.nvidia_driver)}".strip(),
        "major": str(version(wheel)[0] if wheel else major[0]),
        "ending": ending.format(**LINKS),
        "command": _install(wheel) or "nvidia-smi",
    }


def no_kfd(facts: Facts) -> Answer:
    """The machine has an AMD GPU, but ROCm's device file is missing."""
    on_the_bus = facts.build == "ROCm" and "AMD" in facts.vendors
    if not on_the_bus or facts.kfd or facts.system != "Linux":
        return False
    if facts.container:
        return {"advice": words("causes.no_kfd.container")}
    return {"advice": words("causes.no_kfd.machine", **LINKS)}


def no_permission(facts: Facts) -> Answer:
    """The AMD GPU has a driver, but this user isn't allowed to use it."""
    return facts.build == "ROCm" and facts.kfd and not facts.kfd_readable


def hidden(facts: Facts) -> Answer:
    """An environment variable hides the GPUs from this process."""
    if facts.vendor not in facts.present or facts.setting is None:
        return False
    name, value = facts.setting
    # The value can also be the name of a GPU. No GPU has this name, since torch would
    # have found such a GPU. So the name hides every GPU, too.
    first = value.partition(",")[0].partition(".")[0].strip()
    count = len(facts.nvidia_gpus) if facts.build == "CUDA" else 1
    if first.isdecimal() and int(first) < max(1, count):
        return False
    return {"name": name, "setting": _setting(facts.setting)}


def cuda_failed(facts: Facts) -> Answer:
    """The driver is new enough and lists a GPU, but CUDA doesn't start."""
    if facts.build != "CUDA" or "NVIDIA" not in facts.present:
        return False
    versions = "compatible" if facts.driver_cuda else "unknown"
    fields = {"driver_cuda": facts.driver_cuda, "cuda": facts.cuda}
    return {"versions": words(f"causes.cuda_failed.{versions}", **fields)}


def rocm_failed(facts: Facts) -> Answer:
    """The AMD GPU has a driver, but ROCm doesn't support the GPU."""
    if facts.build != "ROCm" or "AMD" not in facts.vendors:
        return False
    return {"command": "hipinfo" if facts.system == "Windows" else "rocminfo"}


def xpu_without_driver(facts: Facts) -> Answer:
    """The machine has an Intel GPU, but the driver for XPU doesn't respond."""
    if facts.build != "XPU" or "Intel" not in facts.vendors:
        return False
    linux = facts.system == "Linux"
    why = "not_passed_through" if facts.container else "no_render_node"
    no_node = words(f"causes.xpu_without_driver.{why}")
    return {
        "render": no_node if linux and not facts.render_node else "",
        "command": "sudo usermod -a -G render $LOGNAME" if linux else "",
    }


def no_gpu(facts: Facts) -> Answer:
    """There is no GPU, and nothing is broken."""
    built = words.table("causes.no_gpu.builds")[facts.build]
    return {"built": built.format(cuda=facts.cuda, hip=facts.hip)}


# The page's questions and their causes. A cause's function assumes that no earlier
# cause applies.
BRANCHES: dict[str, tuple[Cause, ...]] = {
    "accelerator": (works, architecture_missing, computation_failed),
    "mac": (rosetta, intel_mac, mps_not_built, macos_too_old, mps_unavailable),
    "build": (cpu_build, other_build),
    "reach": (
        *(wsl_without_driver, not_passed_through, no_driver, driver_too_old),
        *(no_kfd, no_permission, hidden, cuda_failed, rocm_failed, xpu_without_driver),
    ),
    "none": (no_gpu,),
}
CAUSES = tuple(chain(*BRANCHES.values()))
LINKS: dict[str, str] = words.table("links")


def diagnose(facts: Facts) -> Diagnosis:
    """Diagnose the first cause that applies; the last cause always applies."""
    for cause in CAUSES:
        if answer := cause(facts):
            further = {} if answer is True else answer
            return in_words(cause.__name__, facts, further)
    raise AssertionError("no_gpu always applies")


def in_words(cause: str, facts: Facts, further: dict[str, str]) -> Diagnosis:
    """The texts of a cause; `facts` and `further` fill their placeholders."""
    message = _quote(facts.complaint)
    fields = LINKS | {
        "torch": f"torch {_plain(facts.torch)}".strip(),
        "build": facts.build,
        "vendor": facts.vendor,
        "cuda": facts.cuda,
        "hip": facts.hip,
        "driver_cuda": facts.driver_cuda,
        "macos": facts.macos,
        "message": message,
        "said": f"PyTorch said: {message}" if facts.complaint else "",
        "first": _name(facts.first) if facts.first else "",
        "complaint": _quote(facts.first.complaint) if facts.first else "",
    }
    texts = words.table("causes")[cause]

    def say(part: str) -> str:
        return texts.get(part, "").format(**fields | further).strip()

    return Diagnosis(
        texts.get("state", "cpu"),
        say("verdict")
        or "This machine trains on the CPU, because {reason}.".format(
            reason=say("reason")
        ),
        say("why"),
        say("way_out"),
        say("command"),
        cause,
    )


def _newest_wheel(
    facts: Facts,
    gpu: str,
    fits: Callable[[tuple[int, ...]], bool] = bool,
) -> str:
    """The newest CUDA version that `fits` and whose wheel has code for a GPU, or "".

    `gpu` is the GPU's architecture; any GPU will do if it is "".
    """
    for release, architectures in reversed(facts.releases):
        cuda = version(release)
        if cuda and fits(cuda) and (not gpu or runs_on(architectures, gpu, cuda)):
            return release
    return ""


def _wheel_for_driver(facts: Facts, gpu: str) -> str:
    """The CUDA version of the newest wheel for the driver and a GPU; "" if none is."""
    driver = version(facts.driver_cuda)
    wheel = _newest_wheel(facts, gpu, lambda cuda: not driver or cuda <= driver)
    # A driver also runs later minor versions of the major version that it knows.
    wheel = wheel or _newest_wheel(facts, gpu, lambda cuda: cuda[:1] <= driver[:1])
    if wheel or facts.machine not in ("x86_64", "AMD64"):
        return wheel
    # Those that ended have code for about the same GPUs as the oldest that hasn't.
    ended = builds.releases("x86_64")[0][1]
    fit = [cuda for cuda in builds.table()["ended"] if version(cuda)[:1] == driver[:1]]
    return fit[-1] if fit and (not gpu or runs_on(ended, gpu)) else ""


def _gpu(facts: Facts) -> str:
    """The architecture of the first NVIDIA GPU, by its name; "" if it is unknown."""
    code = builds.capability(facts.nvidia_gpus[0]) if facts.nvidia_gpus else 0
    return f"sm_{code}" if code else ""


def _install(cuda: str) -> str:
    """The command that installs the wheel for a CUDA version; "" for the version ""."""
    return words("install.pip", index=f"cu{cuda.replace('.', '')}") if cuda else ""


def _setting(setting: tuple[str, str]) -> str:
    return f"`{setting[0]}={_plain(setting[1])}`"


def _quote(text: str) -> str:
    """The text as code, so that Markdown in it has no effect."""
    return f"`{_plain(text)}`" if text.strip() else "nothing."


def _name(device: VisibleDevice) -> str:
    return _plain(device.name) or "GPU"


def _plain(text: str) -> str:
    return " ".join(text.replace("`", "'").split())
