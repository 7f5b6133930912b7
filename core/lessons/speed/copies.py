"""Time copies in 1 to 10,000 pieces, and three ways to fetch a number."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product

import torch
from torch import Tensor

from core import devices
from core.lessons.speed.copies_result import (
    CPU,
    ITEM,
    ONCE,
    Copied,
    CopiesLab,
    Fetched,
    Waited,
)
from core.measure import timing
from core.measure.environment import now
from core.watch import UNWATCHED, Watch
from to_device.names import SIMULATED
from to_device.sim import ledger, simulation

BATCHES = 100
WIDTH, BATCH_SIZE = 64, 64  # so small that launching a step takes most of its time


def measure(
    device_name: str,
    watch: Watch = UNWATCHED,
    size: int = 16 * 2**20,
    counts: tuple[int, ...] = (1, 10, 100, 1_000, 10_000),
    steps: int = 500,
    repeats: int = 10,
) -> CopiesLab:
    """Time copies of `size` bytes in `counts` pieces, and three ways to fetch a number.

    This takes about 1 s.
    """
    device = devices.resolve_timed(device_name)

    def in_turn(works: list[Callable[[], object]]) -> list[tuple[float, ...]]:
        works = [watch.unless_cancelled(work) for work in works]
        return timing.measure_side_by_side(works, device, repeats, warmup=2)

    source = torch.randint(256, (size,), dtype=torch.uint8)
    target = torch.empty_like(source, device=device)
    pieces = [(source.tensor_split(n), target.tensor_split(n)) for n in counts]
    timings = in_turn([partial(copy_pieces, *halves) for halves in pieces])
    copies = [Copied(n, size, s) for n, s in zip(counts, timings, strict=True)]

    step = make_step(device)
    timings = in_turn([partial(fetch, step, steps) for fetch in WAYS.values()])
    fetches = [Fetched(way, steps, s) for way, s in zip(WAYS, timings, strict=True)]
    environment = devices.environment(device)
    waits = count_waits(steps) if simulation.works() else ()
    return CopiesLab(tuple(copies), tuple(fetches), environment, now(), waits)


def count_waits(steps: int) -> tuple[Waited, ...]:
    """Count the host's waits with each method, on a simulated accelerator."""
    device, results = torch.device(SIMULATED), []
    # Batches of 128 KiB: the host needn't wait for pageable batches up to 64 KiB.
    pageable = torch.rand(BATCHES, 512, WIDTH)
    memories = {"pageable": pageable, "pinned": pageable.pin_memory()}
    for (memory, batches), non_blocking in product(memories.items(), (False, True)):
        with ledger.counting() as counts:
            move(batches, device, non_blocking)
        way = f"{memory}, {non_blocking=}"
        results.append(Waited(way, counts.waits.total(), BATCHES))
    for way, fetch in WAYS.items():
        step = make_step(device)
        with ledger.counting() as counts:
            fetch(step, steps)
        results.append(Waited(way, counts.waits.total(), steps))
    return tuple(results)


def move(batches: Tensor, device: torch.device, non_blocking: bool) -> None:
    """Copy batches. The host waits unless they are pinned and non_blocking."""
    for batch in batches:
        batch.to(device, non_blocking=non_blocking)


def copy_pieces(sources: Sequence[Tensor], targets: Sequence[Tensor]) -> None:
    """Copy each piece into memory that is allocated already."""
    for source, target in zip(sources, targets, strict=True):
        target.copy_(source)


def make_step(device: torch.device) -> Callable[[], Tensor]:
    """Return a function that does a little work and returns one number."""
    torch.manual_seed(0)
    inputs = torch.rand(BATCH_SIZE, WIDTH, device=device)
    weights = torch.rand(WIDTH, WIDTH, device=device)
    return lambda: (inputs @ weights).mean()


def fetch_items(step: Callable[[], Tensor], steps: int) -> list[float]:
    """Fetch each loss with .item(): the host waits in every step."""
    losses = []
    for _ in range(steps):
        losses.append(step().item())
    return losses


def fetch_with_cpu(step: Callable[[], Tensor], steps: int) -> list[float]:
    """Fetch each loss with .cpu(), which returns when the data has arrived."""
    losses = []
    for _ in range(steps):
        losses.append(step().cpu())
    return torch.stack(losses).tolist()


def fetch_once(step: Callable[[], Tensor], steps: int) -> list[float]:
    """Keep the losses on the device until the end: one copy, one wait."""
    losses = []
    for _ in range(steps):
        losses.append(step())
    return torch.stack(losses).tolist()


WAYS = {ITEM: fetch_items, CPU: fetch_with_cpu, ONCE: fetch_once}
