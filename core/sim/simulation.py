"""A simulated accelerator: the rules of a GPU, computed on the CPU.

    simulation.install()  # once in a process, which then has the device "sim"
    model.to("sim")
    model(images)  # RuntimeError: ... got mat1 is on cpu, different from ... sim:0

What a backend is, in Python. PyTorch keeps a spare device, PrivateUse1, for hardware
that it doesn't know. Here it is called "sim". What a backend brings, in the order in
which to read:

- `memory`: where its tensors lie, and how much of that memory is taken
- `operations`: what it does for each of PyTorch's operations
- `rules`: what it refuses, in the words of CUDA
- `autocast`, `generator`: operations in 16 bits, and random numbers
- `frontend`: `torch.sim`, `torch.accelerator`, events, files
- `ledger`: what a real one does not tell: each copy and each wait, by line
- `selfcheck`: whether it fits this torch, since much of this is private to torch

It is there for the whole life of its process and takes over `torch.accelerator`, so it
is never installed beside a real one. It teaches rules and no speed: an operation takes
longer than the CPU's own.
"""

import os
import subprocess
import sys

import core
from core.errors import ExplainedError

VARIABLE = "SIMULATED_ACCELERATOR"  # "0": never
OFF = ("0", "false", "no", "off")
TRIED = ((2, 10), (2, 15))  # the oldest and the newest torch that it was tried with

why_not: str | None = None  # "": it works; None: nobody has asked for it yet


def works() -> bool:
    """Whether this process has the device, and it passed its own check."""
    return why_not == ""


def is_installed() -> bool:
    """Whether this process has the device."""
    frontend = sys.modules.get("core.sim.frontend")
    return frontend is not None and frontend.is_installed()


def install() -> None:
    """Give this process the device "sim", for good.

    Raises ExplainedError beside a real accelerator, and where torch is too old.
    """
    import torch

    if is_installed():
        return
    if torch.accelerator.is_available():
        real = torch.accelerator.current_accelerator()
        raise ExplainedError(
            "The simulated accelerator is not offered beside a real one: this process "
            f"sees {real}."
        )
    if _version() < TRIED[0]:
        raise ExplainedError(
            "The simulated accelerator needs torch 2.10 or later. This is torch "
            f"{torch.__version__}."
        )
    from core.sim import frontend

    frontend.install()


def offer() -> str:
    """Install the device and check it, once. Returns why not, a sentence, or ""."""
    global why_not
    if why_not is None:
        why_not = _try_to_install()
    return why_not


def _try_to_install() -> str:
    import torch

    if os.environ.get(VARIABLE, "").lower() in OFF:
        return "The simulated accelerator is switched off on this machine."
    try:
        if _version() > TRIED[1]:  # where C++ doesn't fit, a process ends: not this one
            check = [sys.executable, "-m", "core.sim.selfcheck"]
            folder = os.path.dirname(core.__path__[0])
            subprocess.run(check, check=True, timeout=120, cwd=folder)
        install()
        from core.sim import selfcheck

        selfcheck.check()
    except ExplainedError as error:
        return str(error)
    except Exception as error:
        return (
            f"The simulated accelerator doesn't fit torch {torch.__version__}: "
            f"{type(error).__name__}: {error}"
        )
    return ""


def _version() -> tuple[int, int]:
    import torch

    major, minor = torch.__version__.split(".")[:2]
    return int(major), int(minor)
