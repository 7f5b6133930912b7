"""What a browser says that its GPU did: plain data, bounded, without torch.

A browser can claim anything, so none of it is kept among the measurements.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from statistics import median
from typing import Any

from core.measure.environment import Environment, now
from core.measure.rows import Row, row
from core.measure.speedup import FEWEST_REPEATS, Speedup, paired

SIZES = (64, 128, 256, 512, 1024, 2048)  # rows of the square matrices
BATCH_SIZES = (1, 10, 100, 1_000, 10_000)  # images of a forward pass
STEPS, BATCH_SIZE, LEARNING_RATE = 100, 64, 1e-3  # how it trains
WORKS = {"product": SIZES, "forward": BATCH_SIZES, "step": (BATCH_SIZE,)}
SAME_LOSS = 1e-3
LONGEST_NAME, LONGEST_SECONDS, MOST_READINGS, MOST_FLOPS = 60, 600, 100, 1e15
KINDS = ("computer", "phone or tablet", "software")
NAMES = {"torch": "PyTorch, CPU", "browser": "Browser, one thread"}


@dataclass(frozen=True)
class Work:
    """A piece of work, done in turn by the GPU and by its opponent."""

    kind: str  # one of WORKS
    size: int
    gpu: tuple[float, ...]  # seconds of each round
    cpu: tuple[float, ...]  # likewise; none: that would have taken too long

    @property
    def speedup(self) -> Speedup:
        """How many times as fast the GPU is."""
        return paired(self.cpu, self.gpu)


@dataclass(frozen=True)
class BrowserGpu:
    """What the browser claims. Raises ValueError for impossible figures."""

    name: str
    kind: str  # one of KINDS
    works: tuple[Work, ...]
    left_out: tuple[tuple[str, int, str], ...]  # kind, size, "wrong", "slow" or "large"
    losses: tuple[float, ...]  # one for each training step; empty if they were wrong
    clocked: int  # size of the product that was timed in two ways:
    unwaited: tuple[float, ...]  # seconds on a clock that doesn't wait for the GPU
    waited: tuple[float, ...]  # seconds on a clock that waits for it
    there: tuple[float, ...]  # seconds of moving the largest batch to the GPU
    back: tuple[float, ...]  # seconds of moving its logits back
    paces: tuple[float, ...]  # products a second, in each second of steady work
    against: str  # one of NAMES
    expected: tuple[float, ...]  # PyTorch's losses from the same weights and batches
    own_weights: bool  # the weights come from the learner's run
    date: str
    environment: Environment | None = None  # the CPU's; None: the browser's own thread

    def __post_init__(self) -> None:
        readings = [seconds for work in self.works for seconds in (work.gpu, work.cpu)]
        readings += [self.unwaited, self.waited, self.there, self.back]
        names = [(work.kind, work.size) for work in self.works]
        if not (
            self.kind in KINDS
            and len(self.name) <= LONGEST_NAME
            and len(set(names)) == len(names)
            and len(self.left_out) <= sum(map(len, WORKS.values()))
            and all(size in WORKS.get(kind, ()) for kind, size in names)
            and all(len(seconds) <= MOST_READINGS for seconds in readings)
            and all(0 < each <= LONGEST_SECONDS for each in chain(*readings))
            and len(self.losses) in (0, STEPS)
            and all(0 <= each < 1e6 for each in self.losses)
            and len(self.paces) <= MOST_READINGS
            and all(0 < each < 1e9 for each in self.paces)
            and self.speed < MOST_FLOPS
        ):
            raise ValueError("The browser sent figures that no GPU could reach.")

    def of(self, *kinds: str) -> list[Work]:
        return [work for work in self.works if work.kind in kinds]

    def compared(self, *kinds: str) -> list[Work]:
        return [work for work in self.of(*kinds) if work.cpu]

    @property
    def crossover(self) -> int | None:
        """The smallest product from which on the GPU wins every comparison."""
        first = None
        for work in reversed(self.compared("product")):
            if work.speedup.winner != 1:
                break
            first = work.size
        return first

    @property
    def speed(self) -> float:
        """The highest number of floating-point operations a second in a product."""
        speeds = (2 * work.size**3 / median(work.gpu) for work in self.of("product"))
        return max(speeds, default=0.0)

    def rows(self) -> list[Row]:
        """A row for each piece of work and who did it."""
        name = f"{self.name} (according to the browser)"
        here = Environment("webgpu", name, "WebGPU", 1, "", "", "")
        found = []
        for work in self.works:
            about = {"work": work.kind, "size": work.size}
            found.append(row("browser's GPU", work.gpu, here, self.date, **about))
            if work.cpu:
                where = self.environment or replace(here, device_name="CPU")
                what = NAMES[self.against]
                found.append(row(what, work.cpu, where, self.date, **about))
        return found


def literal(name: Any) -> str:
    """A browser's name for a GPU: a short line without control characters."""
    plain = "".join(c if c.isprintable() else " " for c in str(name))
    return " ".join(plain.split())[:LONGEST_NAME] or "a GPU without a name"


def read(
    said: dict[str, Any],
    rounds: Sequence[tuple[Sequence[tuple[str, int]], Sequence[float]]],
    **known: Any,
) -> BrowserGpu:
    """Combine the browser's message with what is `known` here. Raises ValueError.

    `rounds` has the CPU's works and seconds, the warm-up first; it is empty if the
    browser timed its own thread.
    """
    from cattrs import Converter

    try:
        known |= {"name": literal(said["name"]), "date": now()}
        gpu = Converter(detailed_validation=False).structure(said | known, BrowserGpu)
    except Exception as error:  # whatever a class says to fields that it has not
        raise ValueError(f"The browser's figures can't be read: {error}") from error
    timed = [dict(zip(works, seconds, strict=True)) for works, seconds in rounds[1:]]
    works = []
    for work in gpu.works:
        name = work.kind, work.size
        cpu = tuple(each[name] for each in timed if name in each) if timed else work.cpu
        n = min(len(work.gpu), len(cpu) or len(work.gpu))
        if n >= FEWEST_REPEATS:
            works.append(Work(*name, work.gpu[:n], cpu[:n]))
    if gpu.losses and abs(gpu.losses[-1] - gpu.expected[-1]) > SAME_LOSS:
        raise ValueError("The browser's losses disagree with PyTorch's.")
    return replace(gpu, works=tuple(works))
