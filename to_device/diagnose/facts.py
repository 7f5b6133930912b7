"""Collect the facts about this machine for `diagnosis`.

Run `probe` in a separate process if you can: a driver may hang or crash, and torch
looks for its accelerator only once in a process. The facts name no person,
machine or folder, since people paste them into forums.
"""

import csv
import getpass
import os
import platform
import re
import socket
import subprocess
import sys
import warnings
from contextlib import suppress
from pathlib import Path

import torch

from to_device import builds, devices, nvml
from to_device.diagnose.machine import VARIABLES, Facts, VisibleDevice

MOST_OF_A_MESSAGE = 300  # characters
VENDORS = {"10de": "NVIDIA", "1002": "AMD", "8086": "Intel"}  # by PCI vendor number
# PCI base classes of GPUs ("PCI Code and ID Assignment"): display controllers, and
# processing accelerators, which include some GPUs without a display output.
CLASSES = ("03", "12")


def probe() -> Facts:
    driver = nvml.read()
    version, names = driver.version, tuple(gpu.name for gpu in driver.gpus)
    if not version:
        version, names = nvidia_smi()
    accelerator, visible, complaint = ask_torch()
    kfd = Path("/dev/kfd")
    return Facts(
        system=platform.system(),
        machine=platform.machine(),
        torch=str(torch.__version__),
        cuda=torch.version.cuda or "",
        hip=torch.version.hip or "",
        xpu=getattr(torch.version, "xpu", None) or "",
        mps=torch.backends.mps.is_built(),
        architectures=tuple(torch.cuda.get_arch_list()),
        releases=releases(),
        accelerator=accelerator,
        seen=visible,
        complaint=complaint,
        vendors=vendors(),
        nvidia_gpus=names,
        nvidia_driver=version,
        driver_cuda=driver.cuda or builds.cuda_of(version),
        kfd=kfd.exists(),
        kfd_readable=os.access(kfd, os.R_OK | os.W_OK),
        render_node=any(Path("/dev/dri").glob("renderD*")),
        container=in_container(),
        wsl="microsoft" in _read("/proc/version").lower(),
        rosetta=sys.platform == "darwin"
        and run_tool("sysctl", "-n", "sysctl.proc_translated") == "1",
        macos=platform.mac_ver()[0],
        variables=tuple(
            # The UUIDs of GPUs are left out, since they identify the hardware.
            (name, re.sub(r"((?:GPU|MIG)-)[\w-]+", r"\1…", os.environ[name]))
            for name in VARIABLES
            if name in os.environ
        ),
    )


def ask_torch() -> tuple[str, tuple[VisibleDevice, ...], str]:
    """The accelerator's type, its devices (each has tried to compute), and a complaint.

    The complaint is "" if the accelerator is usable. Otherwise, type and devices are
    empty, and the complaint is torch's error or warning, or "" if torch has none.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        accelerator = devices.accelerator()
        if accelerator is None:
            built_for = torch.accelerator.current_accelerator()
            complaint = try_to_compute(built_for) if built_for is not None else ""
            warnings_ = (_first_line(str(warning.message)) for warning in caught)
            return "", (), complaint or next(warnings_, "")
        visible = tuple(
            VisibleDevice(devices.name(d), architecture(d), try_to_compute(d))
            for d in devices.every()[:-1]  # the last one is the CPU
        )
    return accelerator.type, visible, ""


def try_to_compute(device: torch.device) -> str:
    """Return torch's error in a first computation, or "" if it works."""
    try:
        total = (torch.ones(2, device=device) + 1).sum().item()
    except Exception as error:
        return _first_line(str(error)) or type(error).__name__
    return "" if total == 4 else f"2 + 2 came out as {total}"


def architecture(device: torch.device) -> str:
    """ "sm_90" for an NVIDIA GPU, "gfx1100" for an AMD GPU, "" for other devices."""
    if device.type != "cuda":
        return ""
    if torch.version.hip:
        name = torch.cuda.get_device_properties(device).gcnArchName
        return name.partition(":")[0]  # leaves out features: "gfx90a:xnack-"
    major, minor = torch.cuda.get_device_capability(device)
    return f"sm_{major}{minor}"


def releases() -> tuple[tuple[str, tuple[str, ...]], ...]:
    """CUDA version and architectures of PyTorch's wheels.

    They come from torch, or, before torch 2.11, from the table in builds.toml. At
    first, torch's table had the architectures for x86_64 only.
    """
    kind = "aarch64" if platform.machine() in ("aarch64", "arm64") else "x86_64"
    wheels = getattr(torch.cuda, "PYTORCH_RELEASES_CODE_CC", None)
    by_kind = wheels is not None and all(isinstance(c, dict) for c in wheels.values())
    if wheels is None or (not by_kind and kind != "x86_64"):
        return builds.releases(kind)
    if not by_kind:
        wheels = {cuda: {kind: codes} for cuda, codes in wheels.items()}
    return tuple(
        (cuda, tuple(f"sm_{code}" for code in sorted(codes[kind])))
        for cuda, codes in wheels.items()
        if kind in codes
    )


def vendors() -> tuple[str, ...]:
    """Vendors of all GPUs that the system lists, even without a driver."""
    ids = {*_windows_ids(), *_pci_ids()} & VENDORS.keys()
    return tuple(sorted({VENDORS[number] for number in ids}))


def _pci_ids(bus: Path = Path("/sys/bus/pci/devices")) -> list[str]:
    """PCI vendor numbers of all GPUs, like "10de"; only Linux has this folder."""
    return [
        _read(device / "vendor").strip().removeprefix("0x")
        for device in bus.glob("*")
        if _read(device / "class").strip().removeprefix("0x")[:2] in CLASSES
    ]


def _windows_ids() -> list[str]:
    if sys.platform != "win32":
        return []
    import winreg

    ids = []
    adapters = (
        r"SYSTEM\CurrentControlSet\Control\Class"
        r"\{4d36e968-e325-11ce-bfc1-08002be10318}"
    )
    with suppress(OSError), winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, adapters) as key:
        for index in range(winreg.QueryInfoKey(key)[0]):
            with (
                suppress(OSError),
                winreg.OpenKey(key, winreg.EnumKey(key, index)) as adapter,
            ):
                name = winreg.QueryValueEx(adapter, "MatchingDeviceId")[0]
                if match := re.search(r"ven_([0-9a-f]{4})", name, re.IGNORECASE):
                    ids.append(match[1].lower())
    return ids


def nvidia_smi() -> tuple[str, tuple[str, ...]]:
    """The NVIDIA driver's version and its GPUs' names, from the tool nvidia-smi."""
    query = ("--query-gpu=driver_version,name", "--format=csv,noheader")
    lines = run_tool("nvidia-smi", *query).splitlines()
    rows = [row for row in csv.reader(lines, skipinitialspace=True) if len(row) == 2]
    return (rows[0][0] if rows else ""), tuple(name for _, name in rows)


def in_container() -> bool:
    """True in Docker, Podman, Kubernetes and LXC."""
    groups = _read("/proc/1/cgroup")
    return (
        any(Path(mark).exists() for mark in ("/.dockerenv", "/run/.containerenv"))
        or any(name in os.environ for name in ("KUBERNETES_SERVICE_HOST", "container"))
        or any(word in groups for word in ("docker", "kubepods", "lxc"))
    )


def run_tool(name: str, *arguments: str, seconds: float = 5.0) -> str:
    """The output of a tool; "" if it is missing, fails, or takes too long."""
    with suppress(OSError, subprocess.SubprocessError):
        return subprocess.run(
            [name, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
            text=True,
            errors="replace",
            timeout=seconds,
        ).stdout.strip()
    return ""


def anonymous(text: str) -> str:
    """The text without the home folder and the names of the user and the machine."""
    private = {str(Path.home()): "~", socket.gethostname(): "host"}
    with suppress(Exception):  # in some containers, the user has no name
        private[getpass.getuser()] = "user"
    for word, instead in private.items():
        if len(word) > 1:  # the home folder of some users is "/"
            text = re.sub(rf"(?<!\w){re.escape(word)}(?!\w)", instead, text)
    return text


def _first_line(text: str) -> str:
    return anonymous(text.strip().partition("\n")[0][:MOST_OF_A_MESSAGE])


def _read(path: str | Path) -> str:
    with suppress(OSError):
        return Path(path).read_text(errors="replace")
    return ""
