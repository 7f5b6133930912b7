"""An NVIDIA driver to be asked, where there is none."""

import types
from typing import Any


class NVMLError(Exception):
    """As pynvml's."""


def fake_pynvml(**answers: Any) -> types.ModuleType:
    """A driver with two GPUs, the second of which tells nothing but its name."""

    def temperature(handle: int, _: int) -> int:
        if handle == 1:
            raise NVMLError
        return 51

    def rates(handle: int) -> Any:
        if handle == 1:
            raise NVMLError
        return types.SimpleNamespace(gpu=37, memory=12)

    module = types.ModuleType("pynvml")
    module.__dict__.update(
        {
            "NVMLError": NVMLError,
            "NVML_TEMPERATURE_GPU": 0,
            "nvmlInit": lambda: None,
            "nvmlSystemGetDriverVersion": lambda: "580.95.05",
            "nvmlSystemGetCudaDriverVersion": lambda: 13020,
            "nvmlDeviceGetCount": lambda: 2,
            "nvmlDeviceGetHandleByIndex": lambda index: index,
            "nvmlDeviceGetUUID": lambda handle: f"GPU-{handle}",
            "nvmlDeviceGetName": lambda handle: f"GPU number {handle}",
            "nvmlDeviceGetUtilizationRates": rates,
            "nvmlDeviceGetTemperature": temperature,
            **answers,
        }
    )
    return module
