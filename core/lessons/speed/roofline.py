"""The limit of this machine: the rates that bound how fast a model can train.

For the arithmetic, the least time is the number of the model's operations
divided by the rate of a large matrix product. For the memory traffic, the
least time is the number of bytes that must move, divided by the bandwidth of a
plain copy. This module measures both rates.
"""

from contextlib import suppress

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from core import models
from core.data import datasets
from core.lessons.speed.climb_result import Roofline
from core.measure import timing

SIZES = {"cpu": 1024}  # rows of square matrices; DEVICE_SIZE on other devices
DEVICE_SIZE = 8192
BLOCK = 256 * 2**20  # bytes of a copy that is too large for any cache
REPEATS = 7
# Reads and writes per weight in a step. The forward and the backward pass each read the
# weights (2), and the backward pass writes the gradients (1). Adam reads weights,
# gradients and two moments (4), and writes weights and moments (3).
STATE_ACCESSES = 10


def measure(
    task: str, model: str, device: torch.device, repeats: int = REPEATS
) -> Roofline:
    state_dict = models.build(model).state_dict()
    state_bytes = sum(t.numel() * t.element_size() for t in state_dict.values())
    images, labels = datasets.load(task).train.images, datasets.load(task).train.labels
    rates = {"float32": matmul_rate(torch.float32, device, repeats)}
    with suppress(RuntimeError, TypeError):  # not every accelerator has bfloat16
        rates["bfloat16"] = matmul_rate(torch.bfloat16, device, repeats)
    return Roofline(
        flops_per_image(model),
        images[0].numel() * images.element_size() + labels.element_size(),
        STATE_ACCESSES * state_bytes,
        rates,
        bandwidth(BLOCK, device, repeats),
        bandwidth(4 * state_bytes, device, repeats),
    )


def flops_per_image(model: str) -> float:
    """Operations of an image's forward and backward pass, as torch counts them."""
    batch = 8
    network: nn.Module = models.build(model).to("meta")  # the count needs only shapes
    images = torch.empty(batch, 1, 28, 28, device="meta")
    with FlopCounterMode(display=False) as counter:
        network(images).sum().backward()
    return counter.get_total_flops() / batch


def matmul_rate(
    dtype: torch.dtype, device: torch.device, repeats: int = REPEATS
) -> tuple[float, ...]:
    """Measure the operations per second in a product of large matrices."""
    size = SIZES.get(device.type, DEVICE_SIZE)
    a = torch.rand(size, size, device=device).to(dtype)
    b = torch.rand(size, size, device=device).to(dtype)
    readings = timing.measure(lambda: a @ b, device, repeats, warmup=2)
    return tuple(2 * size**3 / seconds for seconds in readings)


def bandwidth(
    block: int, device: torch.device, repeats: int = REPEATS
) -> tuple[float, ...]:
    """Measure the bytes read and written per second when copying `block` bytes.

    A small block is copied many times in each reading.
    """
    source = torch.ones(block, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    times = max(1, BLOCK // block)

    def copy() -> None:
        for _ in range(times):
            target.copy_(source)

    readings = timing.measure(copy, device, repeats, warmup=2)
    return tuple(2 * block * times / seconds for seconds in readings)
