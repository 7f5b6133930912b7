"""The devices that torch can use here, and their names."""

import platform
import subprocess
import sys
from functools import cache
from pathlib import Path

import torch

from to_device.errors import ExplainedError
from to_device.names import SIMULATED


def accelerator() -> torch.device | None:
    """The real accelerator that torch can use: CUDA, ROCm (as "cuda"), XPU or MPS.

    Raises ExplainedError if torch is too old to say.
    """
    if not hasattr(torch, "accelerator"):
        raise ExplainedError(
            f"This is torch {torch.__version__}, and torch 2.6 or later is needed. "
            "Run: python -m pip install --upgrade torch"
        )
    if not torch.accelerator.is_available():
        return None
    device = torch.accelerator.current_accelerator()
    return None if device is None or device.type == SIMULATED else device


def every() -> list[torch.device]:
    """Each device of the accelerator, such as cuda:0 and cuda:1, then the CPU."""
    device, cpu = accelerator(), torch.device("cpu")
    if device is None:
        return [cpu]
    count = torch.accelerator.device_count()
    return [*(torch.device(device.type, i) for i in range(count)), cpu]


def name(device: torch.device) -> str:
    """The product name: "NVIDIA H200", "AMD EPYC 9B14", "Apple M3"."""
    if device.type in ("cuda", "xpu", SIMULATED):
        return torch.get_device_module(device).get_device_name(device)
    return cpu_name()


@cache
def cpu_name() -> str:
    if sys.platform == "darwin":
        command = ["sysctl", "-n", "machdep.cpu.brand_string"]
        return subprocess.run(command, capture_output=True, text=True).stdout.strip()
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
