import sys
from typing import Any

import pytest
import torch

from core import devices
from tests.toolkit.fake_nvml import NVMLError, fake_pynvml
from to_device import nvml


def fail(*_: Any) -> None:
    raise NVMLError


def test_the_driver_tells_what_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", fake_pynvml())
    driver = nvml.read()
    assert (driver.version, driver.cuda) == ("580.95.05", "13.2")
    assert driver.gpus == (
        nvml.NvidiaGpu("GPU-0", "GPU number 0", 37, 51),
        nvml.NvidiaGpu("GPU-1", "GPU number 1", None, None),
    )


@pytest.mark.parametrize("function", ["nvmlInit", "nvmlDeviceGetCount"])
def test_a_driver_that_fails_has_no_gpus(
    monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", fake_pynvml(**{function: fail}))
    assert nvml.read().gpus == ()


def test_a_gpu_that_fell_off_the_bus_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:

    def handle(index: int) -> int:
        if index == 0:
            raise NVMLError
        return index

    module = fake_pynvml(nvmlDeviceGetHandleByIndex=handle)
    monkeypatch.setitem(sys.modules, "pynvml", module)
    assert [gpu.name for gpu in nvml.read().gpus] == ["GPU number 1"]


def test_a_machine_without_the_module_has_no_driver(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert nvml.read() == nvml.NONE


def counting(monkeypatch: pytest.MonkeyPatch, *millijoules: int | None) -> None:
    """A driver whose only board's counter gives these values in turn."""
    values = iter(millijoules)

    def count(handle: str) -> int:
        assert handle == "handle of GPU-1"
        value = next(values)
        if value is None:
            raise NVMLError("Not Supported")
        return value

    module = fake_pynvml(
        nvmlDeviceGetHandleByUUID=lambda uuid: f"handle of {uuid}",
        nvmlDeviceGetTotalEnergyConsumption=count,
    )
    monkeypatch.setitem(sys.modules, "pynvml", module)


def test_millijoules_are_read_as_joules(monkeypatch: pytest.MonkeyPatch) -> None:
    counting(monkeypatch, 0, 1000, 251_000)
    joules = nvml.energy_counter("GPU-1")
    assert joules
    before = joules()
    assert joules() - before == 250


def test_a_board_that_does_not_count_has_no_energy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counting(monkeypatch, None)
    assert nvml.energy_counter("GPU-1") is None


def test_the_cpu_has_no_counter() -> None:
    assert nvml.energy_counter(devices.uuid(torch.device("cpu"))) is None
