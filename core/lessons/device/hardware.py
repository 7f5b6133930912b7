"""The details of this machine's devices, and how full and how busy they are."""

import os
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from core import devices
from core.lessons.device.device_result import DeviceDetails, DeviceLoad
from to_device import nvml
from to_device.devices import every


def describe() -> list[DeviceDetails]:
    kinds: dict[str, Callable[[torch.device], dict[str, Any]]]
    kinds = {"cuda": partial(cuda, driver=nvml.read()), "xpu": xpu, "mps": mps}
    descriptions = []
    for device in every():
        details = kinds.get(device.type, cpu)(device)
        details = {name: value for name, value in details.items() if value is not None}
        name, backend = devices.name(device), devices.backend(device)
        _, total = devices.memory(device)
        descriptions.append(DeviceDetails(str(device), name, backend, total, details))
    return descriptions


def now() -> list[DeviceLoad]:
    """The memory of all devices, and the load and temperature of NVIDIA GPUs."""
    gpus = {gpu.uuid: (gpu.busy_percent, gpu.celsius) for gpu in nvml.read().gpus}
    return [
        DeviceLoad(str(d), *devices.memory(d), *gpus.get(devices.uuid(d), ()))
        for d in every()
    ]


def cuda(device: torch.device, driver: nvml.Driver) -> dict[str, Any]:
    """The details of an NVIDIA GPU or, in a build for ROCm, of an AMD GPU."""
    properties = torch.cuda.get_device_properties(device)
    details: dict[str, Any] = {"multiprocessors": properties.multi_processor_count}
    if torch.version.hip:
        details["architecture"] = properties.gcnArchName.partition(":")[0]
        return details | {"runtime": f"ROCm {torch.version.hip}"}
    runtime = f"CUDA {torch.version.cuda}"
    if cudnn := torch.backends.cudnn.version():  # 91900 for version 9.19.0
        runtime += f", cuDNN {cudnn // 10000}.{cudnn % 10000 // 100}"
    if driver.version:
        details["driver"] = f"{driver.version}, supports CUDA up to {driver.cuda}"
    return details | {
        "compute_capability": f"{properties.major}.{properties.minor}",
        "fast_formats": cuda_formats(properties.major, properties.minor),
        "runtime": runtime,
    }


def cuda_formats(major: int, minor: int) -> list[str]:
    """Number formats that tensor cores multiply, on a GPU of this compute capability.

    float16 since 7.0 (Volta), bfloat16 and TF32 since 8.0 (Ampere), float8 since 8.9
    (Ada). Sources: NVIDIA's CUDA C++ Programming Guide, "Compute Capabilities", and
    Transformer Engine's support matrix.
    """
    since = {"fp16": (7, 0), "bf16": (8, 0), "tf32": (8, 0), "fp8": (8, 9)}
    return [name for name, least in since.items() if (major, minor) >= least]


def xpu(device: torch.device) -> dict[str, Any]:
    properties = torch.xpu.get_device_properties(device)
    return {
        "runtime": f"XPU {getattr(torch.version, 'xpu', '') or ''}".strip(),
        "multiprocessors": getattr(properties, "max_compute_units", None) or None,
        "driver": getattr(properties, "driver_version", None) or None,
        "fast_formats": ["fp16"] if getattr(properties, "has_fp16", False) else None,
        "lacks": None if getattr(properties, "has_fp64", True) else ["float64"],
    }


def mps(_: torch.device) -> dict[str, Any]:
    details = {"runtime": "Metal", "lacks": ["float64"], "shared_memory": True}
    if hasattr(torch.backends.mps, "get_core_count"):  # since torch 2.9
        details["multiprocessors"] = torch.backends.mps.get_core_count()
    return details


def cpu(_: torch.device) -> dict[str, Any]:
    # Empty if torch has no get_capabilities, as in 2.10.
    capabilities: dict[str, object] = getattr(torch.cpu, "get_capabilities", dict)()
    has = {name for name, value in capabilities.items() if value is True}
    return {
        "cores": physical_cores(),
        "logical_cores": os.cpu_count(),
        "threads": devices.training_threads(),
        "fast_formats": cpu_formats(has) if has else None,
        "vectors": [label for flag, label in VECTORS.items() if flag in has] or None,
        "kernels": torch.backends.cpu.get_cpu_capability(),
        "blas": blas(),
    }


# Names in torch.cpu.get_capabilities, and the usual names of these instructions.
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


def cpu_formats(has: set[str]) -> list[str]:
    """Number formats that the CPU multiplies faster than float32, with oneDNN.

    On x86, bf16 needs AVX-512 BF16 or AMX, and fp16 needs AVX-512 FP16 or AMX FP16. A
    CPU that lacks a format converts it to float32 and back. Source: oneDNN's developer
    guide, "Data Types".
    """
    formats = {
        "bf16": {"avx512_bf16", "amx_bf16", "bf16", "sve_bf16"},
        "fp16": {"avx512_fp16", "amx_fp16", "fp16_arith"},
    }
    return [name for name, enough in formats.items() if has & enough]


def physical_cores() -> int | None:
    """The number of physical cores; None without psutil."""
    try:
        import psutil  # comes with dask, which not every machine has
    except ImportError:
        return None
    return psutil.cpu_count(logical=False)


def blas() -> str:
    """The library that multiplies matrices on the CPU, such as "MKL and oneDNN"."""
    named = re.search(r"BLAS_INFO=(\w+)", torch.__config__.show())
    names = {"mkl": "MKL", "open": "OpenBLAS", "accelerate": "Accelerate"}
    library = names.get(named[1], named[1]) if named else "unknown"
    return library + (" and oneDNN" if torch.backends.mkldnn.is_available() else "")
