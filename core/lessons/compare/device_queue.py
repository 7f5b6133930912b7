"""Record when the host and a device with a queue work on several matrix products.

The simulated accelerator usually has no queue. This lab alone gives it one.
"""

import time
from collections.abc import Callable
from contextlib import nullcontext

import torch
from torch import Tensor

from core import devices
from core.lessons.compare.device_queue_result import CALLS, Call, QueueLab, Timeline
from core.lessons.compare.timing_pitfalls import DEVICE_SIZE
from core.measure.environment import now
from core.watch import UNWATCHED, Watch
from to_device.names import SIMULATED
from to_device.sim import queue

Fetch = Callable[[Tensor], float]

SIZE = 768  # rows of the square matrices on the simulated accelerator


def measure(device_name: str, watch: Watch = UNWATCHED) -> QueueLab:
    """Time matrix products, with `.item()` after each product and without.

    Raises ExplainedError for a device that this machine doesn't have.
    """
    device = devices.resolve(device_name)
    is_simulated = device.type == SIMULATED
    size = SIZE if is_simulated else DEVICE_SIZE
    with queue.working() if is_simulated else nullcontext():
        matrix = torch.rand(size, size, device=device)
        multiply(matrix, Tensor.item)  # the first calls take longer than later ones
        watch.check()
        alone = multiply(matrix, None)
        watch.check()
        fetched = multiply(matrix, Tensor.item)
    return QueueLab(size, alone, fetched, devices.environment(device), now())


def multiply(matrix: Tensor, fetch: Fetch | None) -> Timeline:
    """Time CALLS products. If given, `fetch` reads one number per product."""
    device = matrix.device
    began = torch.Event(device, enable_timing=True)
    done = [torch.Event(device, enable_timing=True) for _ in range(CALLS)]
    read = []
    began.record()
    start = time.perf_counter()
    for event in done:
        called = time.perf_counter() - start
        product = matrix @ matrix
        event.record()
        queued = time.perf_counter() - start
        if fetch:
            fetch(product[0, 0])
        read.append((called, queued, time.perf_counter() - start))
    torch.accelerator.synchronize(device)
    waited = time.perf_counter() - start
    ends = [began.elapsed_time(event) / 1e3 for event in done]
    calls = [Call(*times, end) for times, end in zip(read, ends, strict=True)]
    return Timeline(tuple(calls), waited)
