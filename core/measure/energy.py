"""The energy that a GPU takes, as NVIDIA's management library (NVML) counts it.

It counts for the whole board, idle or not, whoever uses it. nvidia-ml-py, which brings
`pynvml`, is optional.
"""

import logging
from collections.abc import Callable
from types import ModuleType

import torch

logger = logging.getLogger(__name__)


def counter(device: torch.device) -> Callable[[], float] | None:
    """A function that answers the joules so far; None where nothing counts them."""
    if device.type != "cuda" or torch.version.hip:
        return None
    try:
        import pynvml
    except ImportError:
        return None
    uuid = getattr(torch.cuda.get_device_properties(device), "uuid", None)
    return None if uuid is None else _counter(pynvml, f"GPU-{uuid}")


def _counter(nvml: ModuleType, uuid: str) -> Callable[[], float] | None:
    try:
        nvml.nvmlInit()
        handle = nvml.nvmlDeviceGetHandleByUUID(uuid)

        def joules() -> float:
            # Millijoules since the driver was loaded.
            return nvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1000

        joules()  # older boards, and slices of one, do not count
    except nvml.NVMLError as error:
        logger.info("no energy: %s", error)
        return None
    return joules
