"""Time copies from the host to a device and back, or within the host.

Bytes per second say little without a size, since each copy takes some microseconds
before its first byte moves. So copies of 4 KB to 256 MB are timed.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from core import devices
from core.errors import is_out_of_memory
from core.lessons.model.model_result import Crossing, Transfer, Transfers
from core.measure import timing
from core.watch import UNWATCHED, Watch
from to_device.errors import ExplainedError
from to_device.sim import ledger

SIZES = tuple(4096 * 4**power for power in range(9))  # bytes: 4 KB, 16 KB, ... 256 MB
REPEATS = 20
FEW_REPEATS = 5  # for copies of at least LARGE bytes, whose times vary little
LARGE = 16 * 2**20  # bytes

# The function that copies, for each kind: (direction, the host's memory).
Copies = dict[tuple[str, str], Callable[[], Tensor]]


def measure(
    device_name: str, watch: Watch = UNWATCHED, sizes: tuple[int, ...] = SIZES
) -> Transfers:
    """Time every kind of copy in turn, at every size that fits into memory."""
    device = devices.resolve_timed(device_name)
    measured: list[Transfer] = []
    for size in sizes:
        try:
            on_host = device.type == "cpu"
            kinds = host_copies(size) if on_host else device_copies(size, device)
            works = [watch.unless_cancelled(copy) for copy in kinds.values()]
            repeats = FEW_REPEATS if size >= LARGE else REPEATS
            timings = timing.measure_side_by_side(works, device, repeats, warmup=2)
            for kind, seconds in zip(kinds, timings, strict=True):
                measured.append(Transfer(*kind, size, seconds))
                watch.report(measured[-1])
        except Exception as error:
            if not measured or not is_out_of_memory(error):
                raise
            break
    if not measured:
        raise ExplainedError("Even the smallest copy did not fit in memory.")
    return Transfers(tuple(measured), devices.environment(device))


def count(device_name: str, size: int = 2**20) -> dict[tuple[str, str], Crossing]:
    """Count copies and waits for each kind of copy on the simulated accelerator."""
    crossings = {}
    device = devices.resolve(device_name)
    pageable = torch.ones(size, dtype=torch.uint8)
    there = pageable.to(device)
    back = torch.empty_like(pageable)
    alone = "pageable, non_blocking"  # not timed: as fast as without non_blocking
    kinds = device_copies(size, device) | {
        ("host to device", alone): lambda: pageable.to(device, non_blocking=True),
        ("device to host", alone): lambda: back.copy_(there, non_blocking=True),
    }
    for kind, copy in kinds.items():
        with ledger.counting() as counts:
            copy()
        crossings[kind] = crossing(counts)
    return crossings


def crossing(counts: ledger.Counts) -> Crossing:
    """The counts of copies between host and device, and of waits."""
    between = [copy for copy in counts.copies if copy.what != ledger.WITHIN]
    return Crossing(
        sum(counts.copies[copy] for copy in between),
        sum(counts.copied[copy] for copy in between),
        counts.waits.total(),
    )


def host_copies(size: int) -> Copies:
    source = torch.ones(size, dtype=torch.uint8)
    target = torch.empty_like(source)
    return {
        ("host to host", "new memory"): lambda: source.to("cpu", copy=True),
        ("host to host", "memory used before"): lambda: target.copy_(source),
    }


def device_copies(size: int, device: torch.device) -> Copies:
    pageable = torch.ones(size, dtype=torch.uint8)
    there = pageable.to(device)
    back = torch.empty_like(pageable)
    to, from_ = "host to device", "device to host"
    kinds: Copies = {
        (to, "pageable"): lambda: pageable.to(device),
        (from_, "pageable"): lambda: back.copy_(there),
    }
    try:
        pinned, back_pinned = pageable.pin_memory(), back.pin_memory()
    except RuntimeError:  # not every accelerator can pin memory
        return kinds
    queued = "pinned, non_blocking"
    return kinds | {
        (to, "pinned"): lambda: pinned.to(device),
        (from_, "pinned"): lambda: back_pinned.copy_(there),
        (to, queued): lambda: pinned.to(device, non_blocking=True),
        # The bytes in back_pinned may be wrong until the timer synchronizes.
        (from_, queued): lambda: back_pinned.copy_(there, non_blocking=True),
    }
