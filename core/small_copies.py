"""Small copies: the same bytes in many pieces, and a number fetched in every step.

What a copy costs by its size is in core.transfers; here it is how often one copies.
"""

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from core import device as devices
from core import timing
from core.comparison import now
from core.errors import CancelledError
from core.labs import CPU, ITEM, ONCE, Copied, CopiesLab, Fetched

BYTES = 16 * 2**20
PIECES = (1, 10, 100, 1_000, 10_000)
STEPS = 500
WIDTH, BATCH_SIZE = 64, 64  # of a step, which is short: launching it is most of it
REPEATS = 10


def measure(
    device_name: str,
    report: Callable[[Copied | Fetched], None] = lambda _: None,
    cancelled: Callable[[], bool] = lambda: False,
    size: int = BYTES,
    counts: tuple[int, ...] = PIECES,
    steps: int = STEPS,
    repeats: int = REPEATS,
) -> CopiesLab:
    """Both halves; reports each figure as soon as it is known."""
    device = devices.resolve(device_name)

    def timed(work: Callable[[], object]) -> tuple[float, ...]:
        if cancelled():
            raise CancelledError
        return timing.measure(work, device, repeats, warmup=2).seconds

    source = torch.randint(256, (size,), dtype=torch.uint8)
    target = torch.empty_like(source, device=device)
    copied = []
    for count in counts:
        pieces = source.tensor_split(count), target.tensor_split(count)
        copied.append(Copied(count, size, timed(partial(copy_pieces, *pieces))))
        report(copied[-1])

    step = make_step(device)
    fetched = []
    for way, fetch in WAYS.items():
        fetched.append(Fetched(way, steps, timed(partial(fetch, step, steps))))
        report(fetched[-1])
    environment = devices.environment(device)
    return CopiesLab(tuple(copied), tuple(fetched), environment, now())


def copy_pieces(sources: Sequence[Tensor], targets: Sequence[Tensor]) -> None:
    """A copy for each piece, into memory that is there already."""
    for source, target in zip(sources, targets, strict=True):
        target.copy_(source)


def make_step(device: torch.device) -> Callable[[], Tensor]:
    """A little work on the device with one number as its result, like a loss."""
    torch.manual_seed(0)
    inputs = torch.rand(BATCH_SIZE, WIDTH, device=device)
    weights = torch.rand(WIDTH, WIDTH, device=device)
    return lambda: (inputs @ weights).mean()


def fetch_items(step: Callable[[], Tensor], steps: int) -> list[float]:
    """The host waits for the device in every step."""
    losses = []
    for _ in range(steps):
        losses.append(step().item())
    return losses


def fetch_with_cpu(step: Callable[[], Tensor], steps: int) -> list[float]:
    """So it does here: a copy to the host waits for what it copies."""
    losses = []
    for _ in range(steps):
        losses.append(step().cpu())
    return torch.stack(losses).tolist()


def fetch_once(step: Callable[[], Tensor], steps: int) -> list[float]:
    """The losses stay on the device until the end: one copy, one wait."""
    losses = []
    for _ in range(steps):
        losses.append(step())
    return torch.stack(losses).tolist()


WAYS = {ITEM: fetch_items, CPU: fetch_with_cpu, ONCE: fetch_once}
