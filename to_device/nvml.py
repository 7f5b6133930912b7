"""The NVIDIA driver and its GPUs, through NVML.

NVML asks the driver, not CUDA, so it answers even if torch finds no GPU, and it knows
all GPUs, whatever CUDA_VISIBLE_DEVICES says.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

logger = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass(frozen=True)
class NvidiaGpu:
    """One GPU at this moment; readings that it doesn't have are None."""

    uuid: str  # identifies one piece of hardware, so it is never shown
    name: str
    # The share of NVML's last sampling period during which kernels ran
    busy_percent: int | None
    celsius: int | None


@dataclass(frozen=True)
class Driver:
    version: str  # "580.95.05"; "" if no driver answers
    cuda: str  # the newest CUDA version that the driver runs, "13.0"
    gpus: tuple[NvidiaGpu, ...]


NONE = Driver("", "", ())


def read() -> Driver:
    """The driver now; NONE without a driver or without the package nvidia-ml-py."""
    pynvml = _load()
    if pynvml is None:
        return NONE

    def ask(question: Callable[..., T], *arguments: Any) -> T | None:
        """Call an NVML function; None if this GPU or this driver has no answer."""
        try:
            return question(*arguments)
        except pynvml.NVMLError:
            return None

    gpus = []
    for index in range(ask(pynvml.nvmlDeviceGetCount) or 0):
        handle = ask(pynvml.nvmlDeviceGetHandleByIndex, index)
        if handle is None:  # the GPU fell off the bus, or belongs to another user
            continue
        rates = ask(pynvml.nvmlDeviceGetUtilizationRates, handle)
        sensor = pynvml.NVML_TEMPERATURE_GPU
        gpu = NvidiaGpu(
            uuid=ask(pynvml.nvmlDeviceGetUUID, handle) or "",
            name=ask(pynvml.nvmlDeviceGetName, handle) or "NVIDIA GPU",
            busy_percent=None if rates is None else rates.gpu,
            celsius=ask(pynvml.nvmlDeviceGetTemperature, handle, sensor),
        )
        gpus.append(gpu)
    cuda = ask(pynvml.nvmlSystemGetCudaDriverVersion)
    return Driver(
        version=ask(pynvml.nvmlSystemGetDriverVersion) or "",
        # 13020 stands for 13.2
        cuda=f"{cuda // 1000}.{cuda % 1000 // 10}" if cuda else "",
        gpus=tuple(gpus),
    )


def energy_counter(uuid: str) -> Callable[[], float] | None:
    """A function that returns the joules that a GPU's whole board has used so far.

    None if nothing counts them, as on older boards and on slices of a board.
    """
    pynvml = _load() if uuid else None
    if pynvml is None:
        return None
    try:
        handle = pynvml.nvmlDeviceGetHandleByUUID(uuid)
        count = partial(pynvml.nvmlDeviceGetTotalEnergyConsumption, handle)
        count()
    except pynvml.NVMLError as error:
        logger.info("could not read the GPU's energy use: %s", error)
        return None
    return lambda: count() / 1000  # NVML counts millijoules since the driver was loaded


def _load() -> Any:
    """The module pynvml, once the driver has answered; None without a driver.

    NVML is not shut down before the process ends: the functions that `energy_counter`
    returns need it.
    """
    try:
        import pynvml  # a bare machine may lack it
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
    except (pynvml.NVMLError, OSError):
        return None
    return pynvml
