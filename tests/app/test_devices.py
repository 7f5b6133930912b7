import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch

from core import config, devices
from tests.process import python
from to_device.errors import ExplainedError

ROOT = Path(__file__).parents[2]
CPU = torch.device("cpu")


@pytest.mark.parametrize("name", [*config.DEVICES, "tpu"])
def test_devices_that_are_not_here_are_explained(name: str) -> None:
    if name in ("auto", "sim", *devices.available()):
        assert devices.resolve(name)
        return
    with pytest.raises(ExplainedError, match=f"no {name} device") as caught:
        devices.resolve(name)
    assert "\n" not in str(caught.value)
    for name_here in devices.available():
        assert name_here in str(caught.value)


def test_description_is_plain_data() -> None:
    described = devices.describe()
    assert json.loads(json.dumps(asdict(described)))
    kinds = [device.device.partition(":")[0] for device in described.devices]
    assert kinds == devices.available()
    for device in described.devices:
        assert device.device_name
        assert 0 < device.free_bytes <= device.total_bytes


def threads_left(**environment: str) -> list[dict[str, Any]]:
    """Threads before and after leave_a_core, in a process of its own, for each start.

    In a process of its own: with OMP_NUM_THREADS as it was when torch was imported.
    """
    script = """
import json, os, torch
from core import devices
cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
counts = []
for start in (torch.get_num_threads(), 1, 2, 64):
    torch.set_num_threads(start)
    devices.leave_a_core()
    counts.append({"start": start, "left": torch.get_num_threads()})
print(json.dumps([cores or os.cpu_count(), counts]))
"""
    inherited = {k: v for k, v in os.environ.items() if k != "OMP_NUM_THREADS"}
    done = python("-c", script, env=inherited | environment)
    cores, counts = json.loads(done.stdout)
    return [count | {"cores": cores} for count in counts]


def test_a_core_is_left() -> None:
    for count in threads_left():
        assert 1 <= count["left"] <= max(1, count["cores"] - 1)
        assert count["left"] <= count["start"]


def test_omp_num_threads_is_honored() -> None:
    counts = threads_left(OMP_NUM_THREADS=str(os.cpu_count()))
    assert all(count["left"] == count["start"] for count in counts)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA or ROCm")
def test_accelerator_is_waited_for() -> None:
    here = devices.resolve("auto")
    square = torch.rand(8192, 8192, device=here)
    for _ in range(50):
        square @ square
    devices.synchronize(here)
    assert torch.cuda.current_stream(here).query()


@pytest.mark.parametrize(
    ("error", "usable"),
    [(RuntimeError("assert"), False), (torch.OutOfMemoryError("full"), True)],
)
def test_a_full_device_is_still_usable(
    monkeypatch: pytest.MonkeyPatch, error: Exception, usable: bool
) -> None:

    def fail(_: torch.device) -> None:
        raise error

    assert devices.usable(devices.resolve("auto"))
    monkeypatch.setattr(devices, "synchronize", fail)
    assert devices.usable(devices.resolve("auto")) == usable
