"""Test in under a second whether the simulated device works with this torch.

Much of torch that the device needs is private and may change with any version. A device
that fails the test is not offered.
"""

import io
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from to_device.names import SIMULATED
from to_device.sim import frontend, memory


def check() -> None:
    """Raise an error if anything that lessons need doesn't work."""
    inputs, targets = torch.arange(12.0).view(4, 3) / 12, torch.tensor([0, 1, 0, 1])
    before = memory.allocated
    here, there = (losses(device, inputs, targets) for device in ("cpu", SIMULATED))
    require(torch.equal(here, there), "training results differ from those on the CPU")
    require(memory.allocated <= before, "memory is not released")

    moved, file = inputs.to(SIMULATED), io.BytesIO()
    torch.save(moved, file)
    file.seek(0)
    require(
        torch.load(file).device == moved.device,
        "a saved tensor comes back on a different device",
    )
    refuses("same device", lambda: moved + inputs)
    refuses("numpy", moved.numpy)  # also in torch's words where there is no numpy
    with memory.limited_to(memory.allocated + 1024):
        refuses("out of memory", lambda: torch.zeros(1024, device=SIMULATED))


def losses(device: str, inputs: Tensor, targets: Tensor) -> Tensor:
    """The losses (3,) of three steps of training, on the host."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    optimizer = torch.optim.AdamW(model.parameters())
    model.to(device)
    inputs, targets, values = inputs.to(device), targets.to(device), []
    for _ in range(3):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        values.append(loss.detach())
    return torch.stack(values).cpu()


def refuses(words: str, action: Callable[[], Any]) -> None:
    message = "nothing"
    try:
        action()
    except (RuntimeError, TypeError) as error:
        message = str(error)
    require(words in message.lower(), f"an error says {message!r} instead of {words!r}")


def require(holds: bool, problem: str) -> None:
    if not holds:
        raise RuntimeError(problem)


if __name__ == "__main__":
    frontend.install()
    check()
    print(f"The simulated accelerator works with torch {torch.__version__}.")
