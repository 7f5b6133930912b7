"""core.measure.energy: joules, where something counts them."""

from types import SimpleNamespace

import torch

from core.measure import energy


class NVMLError(Exception):
    pass


def fake(millijoules):
    """A pynvml with one board, whose counter gives these values in turn."""
    values = iter(millijoules)

    def count(handle):
        assert handle == "handle of GPU-1"
        value = next(values)
        if value is None:
            raise NVMLError("Not Supported")
        return value

    return SimpleNamespace(
        NVMLError=NVMLError,
        nvmlInit=lambda: None,
        nvmlDeviceGetHandleByUUID=lambda uuid: f"handle of {uuid}",
        nvmlDeviceGetTotalEnergyConsumption=count,
    )


def test_millijoules_are_read_as_joules():
    """The difference of two looks is the energy between them."""
    joules = energy._counter(fake([0, 1000, 251_000]), "GPU-1")
    before = joules()
    assert joules() - before == 250


def test_a_board_that_does_not_count_has_no_energy():
    """No counter, rather than an error or a zero."""
    assert energy._counter(fake([None]), "GPU-1") is None


def test_the_cpu_has_no_counter():
    """Nothing is invented where NVML says nothing."""
    assert energy.counter(torch.device("cpu")) is None
