"""Common ways to ask torch for a device, and torch's answers on this machine."""

from contextlib import redirect_stdout
from io import StringIO

import torch

from core import devices
from to_device.names import SIMULATED


def classic() -> str:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return str(device)


def with_mps() -> str:
    if torch.cuda.is_available():
        return "cuda"
    if torch.backends.mps.is_available():
        return "mps"
    return "cpu"


def any_accelerator() -> str:
    gpu = torch.accelerator.current_accelerator(check_available=True)
    device = gpu or "cpu"
    return str(device)


def unchecked() -> str:
    return str(torch.accelerator.current_accelerator())


def announced() -> str:
    if torch.cuda.is_available():
        device = torch.device("cuda")
        print("Training on GPU:", torch.cuda.get_device_name(0))
    else:
        device = torch.device("cpu")
        print("Training on CPU (GPU not available)")
    return str(device)


def answers() -> dict[str, str]:
    """Each idiom's answer, keyed by its name. "printed" has what the idioms printed."""
    idioms = (classic, with_mps, any_accelerator, unchecked, announced)
    with redirect_stdout(StringIO()) as output:
        device_names = {idiom.__name__: idiom() for idiom in idioms}
    return device_names | {"printed": output.getvalue().strip()}


def simulated_answers() -> dict[str, str]:
    """Install the simulated accelerator in this process for good, then call `answers`.

    Raises ExplainedError if there is no simulated accelerator.
    """
    devices.resolve(SIMULATED)
    return answers()
