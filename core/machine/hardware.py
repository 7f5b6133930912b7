"""The devices of this machine in detail: what they are, what they are fast in, and
how full and how busy they are now.

Each device is a dict of plain data. Keys that a device does not tell are left out:
device, device_name, backend, total_bytes, then those of LABELS in core.ui.machine.
"""

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from core import devices
from core.measure import nvml

Device = dict[str, Any]


def every_device() -> list[torch.device]:
    """All devices of the accelerator, one by one, then the CPU."""
    found = devices.accelerator()
    if found is None:
        return [torch.device("cpu")]
    count = torch.accelerator.device_count()
    return [*(torch.device(found.type, i) for i in range(count)), torch.device("cpu")]


def describe() -> list[Device]:
    """What does not change while the app runs, for every device."""
    tell = {"cuda": cuda, "xpu": xpu, "mps": mps, "cpu": cpu}
    return [
        {
            "device": str(each),
            "device_name": devices.name(each),
            "backend": devices.backend(each),
            "total_bytes": devices.memory(each)[1],
            **(tell[each.type](each) if each.type in tell else {}),
        }
        for each in every_device()
    ]


def now() -> list[Device]:
    """What changes: memory, and for NVIDIA GPUs how busy and how warm they are."""
    gpus = {gpu.uuid: gpu for gpu in nvml.read().gpus}
    found = []
    for each in every_device():
        free, total = devices.memory(each)
        figures: Device = {"device": str(each), "free_bytes": free}
        figures["total_bytes"] = total
        if free is not None and total is not None:
            figures["used_bytes"] = total - free
        gpu = gpus.get(devices.uuid(each))
        if gpu is not None:
            figures |= {"busy_percent": gpu.busy_percent, "celsius": gpu.celsius}
        found.append(figures)
    return found


def cuda(device: torch.device) -> Device:
    """Of an NVIDIA GPU, or of an AMD GPU in a build for ROCm."""
    told = torch.cuda.get_device_properties(device)
    if torch.version.hip:
        return {
            "architecture": told.gcnArchName.partition(":")[0],
            "multiprocessors": told.multi_processor_count,
            "runtime": f"ROCm {torch.version.hip}",
        }
    cudnn = torch.backends.cudnn.version() or 0
    driver = nvml.read()
    found: Device = {
        "compute_capability": f"{told.major}.{told.minor}",
        "multiprocessors": told.multi_processor_count,
        "fast_formats": cuda_formats(told.major, told.minor),
        "runtime": f"CUDA {torch.version.cuda}"
        # 91900 stands for 9.19.0
        + (f", cuDNN {cudnn // 10000}.{cudnn % 10000 // 100}" if cudnn else ""),
    }
    if driver.version:
        found["driver"] = f"{driver.version}, runs CUDA up to {driver.cuda}"
    return found


def cuda_formats(major: int, minor: int) -> list[str]:
    """Number formats that the tensor cores of a compute capability multiply.

    float16 since 7.0 (Volta), bfloat16 and TF32 since 8.0 (Ampere), float8 since 8.9
    (Ada): NVIDIA's CUDA C++ Programming Guide, "Compute Capabilities", and Transformer
    Engine's support matrix.
    """
    since = {"fp16": (7, 0), "bf16": (8, 0), "tf32": (8, 0), "fp8": (8, 9)}
    return [name for name, least in since.items() if (major, minor) >= least]


def xpu(device: torch.device) -> Device:
    """Of an Intel GPU."""
    told = torch.xpu.get_device_properties(device)
    found: Device = {
        "runtime": f"XPU {getattr(torch.version, 'xpu', '') or ''}".strip()
    }
    for key, name in {
        "multiprocessors": "max_compute_units",
        "driver": "driver_version",
    }.items():
        if getattr(told, name, None):
            found[key] = getattr(told, name)
    if getattr(told, "has_fp16", False):
        found["fast_formats"] = ["fp16"]
    if not getattr(told, "has_fp64", True):
        found["lacks"] = ["float64"]
    return found


def mps(_: torch.device) -> Device:
    """Of the GPU in Apple silicon. Its memory is the Mac's."""
    found: Device = {"runtime": "Metal", "lacks": ["float64"]}
    if hasattr(torch.backends.mps, "get_core_count"):  # since torch 2.10 or so
        found["multiprocessors"] = torch.backends.mps.get_core_count()
    found["shared_memory"] = True
    return found


def cpu(_: torch.device) -> Device:
    """Of the CPU: cores, the threads that training takes, what torch makes of it."""
    has = capabilities()
    found: Device = {
        "cores": physical_cores(),
        "logical_cores": os.cpu_count(),
        "threads": devices.training_threads(),
        "fast_formats": cpu_formats(has),
        "vectors": [label for flag, label in VECTORS.items() if flag in has],
        "kernels": torch.backends.cpu.get_cpu_capability(),
        "blas": blas(),
    }
    return {key: value for key, value in found.items() if value is not None}


# Vector and matrix instructions worth knowing, as torch.cpu.get_capabilities and
# /proc/cpuinfo name them, and as people do.
VECTORS = {
    "avx2": "AVX2",
    "avx512_f": "AVX-512",
    "avx512_vnni": "AVX-512 VNNI",
    "avx512_bf16": "AVX-512 BF16",
    "avx512_fp16": "AVX-512 FP16",
    "amx_tile": "AMX",
    "neon": "NEON",
    "bf16": "BF16",
    "i8mm": "I8MM",
    "sve": "SVE",
    "sve2": "SVE2",
    "sme": "SME",
}
CPUINFO = {"avx512f": "avx512_f", "asimd": "neon", "asimdhp": "fp16_arith"}


def capabilities() -> set[str]:
    """What instructions the CPU has, by the names of torch.cpu.get_capabilities."""
    if hasattr(torch.cpu, "get_capabilities"):
        told = torch.cpu.get_capabilities()
        return {name for name, value in told.items() if value is True}
    return from_cpuinfo(Path("/proc/cpuinfo"))


def from_cpuinfo(path: Path) -> set[str]:
    """The same from Linux, for a torch that does not tell."""
    with suppress(OSError):
        flags = re.search(r"^(?:flags|Features)\s*:(.*)$", path.read_text(), re.M)
        return (
            {CPUINFO.get(each, each) for each in flags[1].split()} if flags else set()
        )
    return set()


def cpu_formats(has: set[str]) -> list[str]:
    """Number formats that the CPU multiplies faster than float32, as oneDNN uses them.

    oneDNN's developer guide, "Data Types": bf16 with AVX-512 BF16 or AMX, fp16 with
    AVX-512 FP16 or AMX FP16. On others both work, converted to float32 and back.
    """
    formats = {
        "bf16": {"avx512_bf16", "amx_bf16", "bf16", "sve_bf16"},
        "fp16": {"avx512_fp16", "amx_fp16", "fp16_arith"},
    }
    return [name for name, enough in formats.items() if has & enough]


def physical_cores() -> int | None:
    """Cores without hyper-threading; None where nobody tells."""
    try:
        import psutil  # comes with dask; a bare machine may lack it
    except ImportError:
        return None
    return psutil.cpu_count(logical=False)


def blas() -> str:
    """The library that multiplies matrices on the CPU: "mkl", "open", "accelerate"."""
    named = re.search(r"BLAS_INFO=(\w+)", torch.__config__.show())
    names = {"mkl": "MKL", "open": "OpenBLAS", "accelerate": "Accelerate"}
    library = names.get(named[1], named[1]) if named else "unknown"
    return library + (" and oneDNN" if torch.backends.mkldnn.is_available() else "")
