"""Ways to ask torch for a device, as they are found in the wild."""

import torch

from core import devices
from core.config import SIMULATED


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
    if torch.accelerator.is_available():
        return str(torch.accelerator.current_accelerator())
    return "cpu"


def unchecked() -> str:
    return str(torch.accelerator.current_accelerator())


def checked() -> str:
    try:
        return str(torch.accelerator.current_accelerator(check_available=True))
    except TypeError:  # before torch 2.7
        return ""


def answers() -> dict[str, str]:
    """Each idiom's answer in this process, by its name."""
    idioms = (classic, with_mps, any_accelerator, unchecked, checked)
    return {idiom.__name__: idiom() for idiom in idioms}


def simulated_answers() -> dict[str, str]:
    """The same beside the simulated accelerator, which this process has from then on.

    Raises ExplainedError where the simulated accelerator can't be had.
    """
    devices.resolve(SIMULATED)
    return answers()
