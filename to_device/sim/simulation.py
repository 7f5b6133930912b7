"""A simulated accelerator: the rules of a GPU, computed on the CPU.

    simulation.offer()  # once in a process, which then has the device "sim"
    model.to("sim")
    model(images)  # RuntimeError: ... got mat1 is on cpu, different from ... sim:0

This is a PyTorch backend in Python. PyTorch has a spare device, PrivateUse1, for
hardware that it doesn't know. Here, the device is called "sim". Read the backend's
parts in this order:

- `memory`: where the device's tensors are, and how much memory they take
- `operations`: what it does for each of PyTorch's operations, and for autocast
- `attention`: the operations that compute a transformer's layer in one call
- `refusals`: what it refuses, in CUDA's words
- `generator`: random numbers
- `frontend`: `torch.sim`, `torch.accelerator`, events, files
- `ledger`: what a real device doesn't report: each copy and each wait, by line
- `queue`: an experiment, in which the host goes on while the device works
- `sizes`: a pass without values, for what doesn't fit the host's memory
- `selfcheck`: whether it works with this torch, since it uses private parts of torch

The device stays until the process ends. It takes over `torch.accelerator`, so it is
never installed beside a real accelerator. It teaches rules but not speed: its
operations take longer than the CPU's.
"""

import os
import subprocess
import sys
from pathlib import Path

OLDEST, NEWEST = (2, 10), (2, 15)  # versions of torch that the device was tested with
CUDA_WORDS = (  # what the device says, and what CUDA says instead
    ("wrapper_SIM_", "wrapper_CUDA_"),
    ("simFloatType", "torch.cuda.FloatTensor"),
    ("torch.sim.", "torch.cuda."),
    ("SIM ", "CUDA "),
    ("'sim'", "'cuda'"),
    (": sim ", ": cuda "),
    ("sim:", "cuda:"),
)

ROOT = str(Path(__file__).parents[2])  # where the package to_device is

why_not: str | None = None  # "" if the device works; None before the first `offer`


def works() -> bool:
    return why_not == ""


def offer() -> str:
    """Give this process the device, for good. Returns "", or a sentence on why not."""
    global why_not
    if why_not is None:
        why_not = _install()
    return why_not


def too_old() -> str:
    """A sentence if torch is older than the device needs, or else "".

    Ask this before you import the device's other parts, which an old torch may lack.
    """
    import torch

    if _version() >= OLDEST:
        return ""
    return (
        "The simulated accelerator needs torch 2.10 or later, but this is torch "
        f"{torch.__version__}."
    )


def _version() -> tuple[int, ...]:
    import torch

    return tuple(map(int, torch.__version__.split(".")[:2]))


def _install() -> str:
    import torch

    setting = os.environ.get("SIMULATED_ACCELERATOR", "").lower()
    if setting in ("0", "false", "no", "off"):
        return "The simulated accelerator is turned off on this machine."
    if why := too_old():
        return why
    if torch.accelerator.is_available():
        real = torch.accelerator.current_accelerator()
        return (
            "The simulated accelerator is not available alongside a real accelerator, "
            f"and this process has {real}."
        )
    from to_device.sim import frontend, selfcheck

    try:
        # If the device doesn't fit a newer torch's C++ code, the process may end. So
        # another process tries the device first.
        if _version() > NEWEST:
            command = [sys.executable, "-m", selfcheck.__name__]
            env = {**os.environ, "PYTHONPATH": os.pathsep.join([ROOT, *sys.path])}
            subprocess.run(command, check=True, timeout=120, env=env)
        frontend.install()
        selfcheck.check()
    except Exception as error:
        return (
            "The simulated accelerator doesn't work with torch "
            f"{torch.__version__}: {error}"
        )
    return ""


def in_cuda_words(message: str) -> str:
    """The message as CUDA would word it."""
    for ours, theirs in CUDA_WORDS:
        message = message.replace(ours, theirs)
    return message
