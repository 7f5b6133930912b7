"""A diagnosis of another machine, from what PyTorch's collect_env prints there."""

import re
from dataclasses import replace

from to_device import builds
from to_device.diagnose.diagnosis import diagnose, words
from to_device.diagnose.machine import VARIABLES, Diagnosis, Facts, VisibleDevice
from to_device.errors import ExplainedError

LINES: str = words.table("pasted.lines")  # commands that print such a report
MOST_CHARACTERS = 100_000
MOST_OF_A_LINE = 400  # characters
MOST_ENTRIES = 100  # GPUs, and settings in environment variables
NOTHING = ("N/A", "None", "Could not collect", "No CUDA")
# Possessive quantifiers (`++`) and atomic groups (`(?>`) try no other match, so that
# the time grows only with a line's length, not with its square.
BUS = re.compile(
    r"(?im)^(?:(?>.*?\b(?:vga|3d|display)\b).*controller|.*processing accelerators).*$"
)
MAKERS = {"NVIDIA": r"nvidia", "AMD": r"\bamd|\bati\b", "Intel": r"\bintel"}
ERROR = re.compile(r"(?m)^(?:\w++\.)*+\w+Error: (.*)$")

Wheels = tuple[tuple[str, tuple[str, ...]], ...]


def diagnose_report(text: str, releases: Wheels = ()) -> Diagnosis:
    """Diagnose a machine from what collect_env and the page's other commands print.

    `releases` are PyTorch's wheels, as this machine's torch lists them; without torch,
    they come from builds.toml. Raises ExplainedError if the text isn't from
    collect_env, or says too little about a Mac.
    """
    lines = text[:MOST_CHARACTERS].replace("\r", "").split("\n")
    text = "\n".join(line[:MOST_OF_A_LINE] for line in lines)
    facts = read(text, releases)
    diagnosis = diagnose(facts)
    is_cuda = facts.accelerator == "cuda"
    if is_cuda and diagnosis.cause == "works" and "Capability" not in text:
        why, way_out = (
            "torch reports a GPU that it can use, but this build may "
            "have no code for it.",
            words("pasted.compute"),
        )
        return replace(diagnosis, why=why, way_out=way_out)
    if diagnosis.cause == "works" and not is_cuda:
        why = "torch reports a GPU that it can use. Nothing was computed on it."
        return replace(diagnosis, why=why)
    if diagnosis.cause == "no_gpu" and not BUS.search(text):
        return replace(diagnosis, way_out=words("pasted.bus"))
    return diagnosis


def read(text: str, releases: Wheels = ()) -> Facts:
    pairs = re.findall(r"(?m)^ *+([A-Z][\w ]++): *+(.*)$", text)
    pairs = [(name, value.rstrip(" ")) for name, value in pairs]
    values = {name: "" if value in NOTHING else value for name, value in pairs[::-1]}
    if "PyTorch version" not in values:
        raise ExplainedError(words("pasted.unreadable"))
    if not values["PyTorch version"]:
        raise ExplainedError(words("pasted.no_torch"))
    system, platform = values.get("OS", ""), values.get("Python platform", "")
    is_mac, is_arm = "mac" in system.lower(), "arm64" in system + platform
    kind = "aarch64" if is_arm or "aarch64" in platform else "x86_64"
    mps = values.get("MPS", "").split()
    rosetta = is_mac and re.search(r"(?m)^Apple M\d", text) is not None and not is_arm
    if is_mac and is_arm and not mps:
        raise ExplainedError(words("pasted.no_mps"))
    names = re.findall(r"GPU \d++: ([^\n(]+)", text)[:MOST_ENTRIES]
    names = [name.rstrip(" ") for name in names]
    driver = values.get("Nvidia driver version", "")
    smi = re.search(r"CUDA Version: *([\d.]+)", text)  # a line of nvidia-smi
    bus = "\n".join(BUS.findall(text))
    error = ERROR.search(text)
    facts = Facts(
        system="Darwin" if is_mac else "Windows" if "Windows" in system else "Linux",
        machine="arm64" if is_arm else "x86_64",
        torch=values["PyTorch version"],
        cuda=values.get("CUDA used to build PyTorch", ""),
        hip=values.get("HIP used to build PyTorch", ""),
        xpu="xpu" if values["PyTorch version"].endswith("+xpu") else "",
        mps=mps[:1] == ["True"],
        architectures=tuple(values.get("Built for", "").split()),
        releases=releases or builds.releases(kind),
        complaint=error[1][:300] if error else "",
        vendors=tuple(name for name, by in MAKERS.items() if re.search(by, bus, re.I)),
        nvidia_gpus=tuple(names),
        nvidia_driver=driver,
        driver_cuda=smi[1] if smi else builds.cuda_of(driver),
        wsl="microsoft" in platform.lower(),
        rosetta=rosetta,
        macos=re.sub(r"[^\d.]", "", system.partition("(")[0]) if is_mac else "",
        # The report doesn't say if an AMD driver's device files exist: assume they do.
        kfd=True,
        kfd_readable=True,
        render_node=True,
        variables=tuple(
            re.findall(rf"(?m)^({'|'.join(VARIABLES)})=(.*)$", text)[:MOST_ENTRIES]
        ),
    )
    kinds = {"cuda": "Is CUDA available", "xpu": "Is XPU available"}
    usable = [kind for kind, line in kinds.items() if values.get(line) == "True"]
    usable += ["mps"] if mps[1:2] == ["True"] else []
    if not usable:
        return facts
    capability = values.get("Capability", "").replace(" ", "")
    model = values.get("GPU models and configuration", "")
    architecture = f"sm_{capability}" if capability else ""
    if amd := re.match(r"(.*) \((gfx\w+)", model):
        names, architecture = [amd[1]], amd[2]
    first = VisibleDevice((names or [""])[0], architecture, facts.complaint)
    others = tuple(VisibleDevice(name) for name in names[1:])
    return replace(facts, accelerator=usable[0], seen=(first, *others), complaint="")
