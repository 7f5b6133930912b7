import getpass
import json
import re
import socket
import sys
import types
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch

from core import devices
from core.lessons.device import hardware, idioms
from tests.toolkit.fake_nvml import fake_pynvml
from to_device import nvml
from to_device.words import Words


@pytest.mark.parametrize(
    ("capability", "formats"),
    [
        ((6, 1), []),
        ((7, 0), ["fp16"]),
        ((8, 6), ["fp16", "bf16", "tf32"]),
        ((8, 9), ["fp16", "bf16", "tf32", "fp8"]),
        ((12, 0), ["fp16", "bf16", "tf32", "fp8"]),
    ],
)
def test_formats_come_with_the_compute_capability(
    capability: tuple[int, int], formats: list[str]
) -> None:
    assert hardware.cuda_formats(*capability) == formats


GPU, CPU = torch.device("cuda:0"), torch.device("cpu")
LABELS = Words(hardware.__file__).table("cards.labels")


def cuda_properties(**more: Any) -> types.SimpleNamespace:
    return types.SimpleNamespace(
        major=9, minor=0, multi_processor_count=132, uuid="0", **more
    )


def test_a_gpu_is_described_with_its_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        torch.cuda, "get_device_properties", lambda _: cuda_properties()
    )
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.version, "hip", None)
    monkeypatch.setitem(sys.modules, "pynvml", fake_pynvml())
    details = hardware.cuda(GPU, nvml.read())
    assert details["compute_capability"] == "9.0"
    assert details["multiprocessors"] == 132
    assert "fp8" in details["fast_formats"]
    assert details["driver"].startswith("580.95.05")
    assert details["runtime"].startswith("CUDA 13.0")
    assert details.keys() <= LABELS.keys()


def test_load_belongs_to_the_right_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus = [torch.device("cuda:0"), torch.device("cuda:1")]
    monkeypatch.setattr(hardware, "every", lambda: gpus)
    monkeypatch.setattr(devices, "memory", lambda _: (60, 100))
    monkeypatch.setattr(devices, "uuid", lambda gpu: f"GPU-{1 - gpu.index}")
    monkeypatch.setitem(sys.modules, "pynvml", fake_pynvml())
    first, second = hardware.now()
    assert first.busy_percent is None  # NVML's number 1, which tells nothing
    assert (second.busy_percent, second.celsius) == (37, 51)
    assert first.used_bytes == 40


def test_an_amd_gpu_has_no_compute_capability(monkeypatch: pytest.MonkeyPatch) -> None:
    properties = cuda_properties(gcnArchName="gfx942:sramecc+:xnack-")
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: properties)
    monkeypatch.setattr(torch.version, "hip", "6.4")
    details = hardware.cuda(GPU, nvml.read())
    assert details["architecture"] == "gfx942"
    assert "compute_capability" not in details
    assert devices.uuid(torch.device("cuda:0")) == ""


def test_the_cpu_is_described(monkeypatch: pytest.MonkeyPatch) -> None:
    details = hardware.cpu(CPU)
    assert 1 <= details["threads"] <= details["logical_cores"]
    assert details["kernels"] == torch.backends.cpu.get_cpu_capability()
    assert details.keys() <= LABELS.keys()
    monkeypatch.delattr(torch.cpu, "get_capabilities", raising=False)
    (*_, here) = hardware.describe()
    assert not {"vectors", "fast_formats"} & here.details.keys()


@pytest.mark.parametrize(
    ("flags", "formats"),
    [
        ({"avx2"}, []),
        ({"avx512_f", "avx512_bf16"}, ["bf16"]),
        ({"amx_bf16", "avx512_fp16"}, ["bf16", "fp16"]),
        ({"neon", "bf16", "fp16_arith"}, ["bf16", "fp16"]),
    ],
)
def test_a_cpu_is_fast_in_what_it_has_instructions_for(
    flags: set[str], formats: list[str]
) -> None:
    assert hardware.cpu_formats(flags) == formats


def test_memory_is_used_and_free() -> None:
    loads = hardware.now()
    assert [load.device for load in loads] == [
        device.device for device in hardware.describe()
    ]
    for load in loads:
        assert load.used_bytes + load.free_bytes == load.total_bytes


@pytest.mark.gpu
@pytest.mark.skipif(devices.accelerator() is None, reason="needs a real accelerator")
def test_the_accelerator_is_described() -> None:
    first = hardware.describe()[0]
    assert first.backend in ("CUDA", "ROCm", "XPU", "MPS")
    assert first.details["runtime"]
    assert first.total_bytes > 0


def test_the_page_names_no_person_host_or_folder() -> None:
    text = json.dumps([*map(asdict, hardware.describe()), idioms.answers()])
    for private in (getpass.getuser(), socket.gethostname(), str(Path.home())):
        if len(private) > 1:  # "/" is the home of some users
            assert not re.search(rf"(?<!\w){re.escape(private)}(?!\w)", text)
    assert "GPU-" not in text
