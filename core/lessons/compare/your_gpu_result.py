"""What a browser says that its GPU did: plain data, bounded, without torch.

A browser can claim anything, so none of it is kept among the measurements.
"""

from dataclasses import dataclass, replace
from itertools import chain
from statistics import median
from typing import Any, NamedTuple

from core.measure.environment import Environment, now
from core.measure.rows import Row, row
from core.measure.speedup import Speedup, paired

SIZES = (64, 128, 256, 512, 1024, 2048)  # rows of the square matrices
BATCH_SIZES = (1, 10, 100, 1_000, 10_000)  # images of a forward pass
STEPS, BATCH_SIZE = 100, 64  # steps of the training, and images in each
WORKS = {"product": SIZES, "forward": BATCH_SIZES, "step": (BATCH_SIZE,)}
ROUNDS = 7  # without the warm-up
LONGEST_NAME, LONGEST_SECONDS, MOST_PACES, MOST_FLOPS = 60, 600, 100, 1e15
KINDS = ("computer", "phone or tablet", "software")
YOURS = "Your GPU"
NAMES = {"torch": "PyTorch, CPU", "browser": "Browser, one thread"}


class Reading(NamedTuple):
    who: str  # YOURS or one of NAMES' values
    work: str  # one of WORKS
    size: int
    seconds: tuple[float, ...]


@dataclass(frozen=True)
class Work:
    """A piece of work, done in turn by the GPU and by its opponent."""

    kind: str  # one of WORKS
    size: int
    gpu: tuple[float, ...]  # seconds of each round
    cpu: tuple[float, ...]  # the opponent's; empty if they would take too long

    @property
    def speedup(self) -> Speedup:
        """How many times as fast the GPU is."""
        return paired(self.cpu, self.gpu)


@dataclass(frozen=True)
class BrowserGpu:
    """What the browser claims."""

    name: str
    kind: str  # one of KINDS
    works: tuple[Work, ...]
    # Works that weren't timed: the kind, the size, and why ("wrong" or "slow").
    left_out: tuple[tuple[str, int, str], ...]
    losses: tuple[float, ...]  # one for each training step; empty if they were wrong
    clocked: int  # size of the product that `unwaited` and `waited` time
    unwaited: tuple[float, ...]  # seconds on a clock that doesn't wait for the GPU
    waited: tuple[float, ...]  # seconds on a clock that waits for the GPU
    there: tuple[float, ...]  # seconds of moving the largest batch to the GPU
    back: tuple[float, ...]  # seconds of moving its logits back
    paces: tuple[float, ...]  # products a second, in each second of steady work
    against: str  # one of NAMES
    expected: tuple[float, ...]  # PyTorch's losses from the same weights and batches
    own_weights: bool  # the weights come from the learner's run
    date: str
    environment: Environment | None = None  # of the CPU; None for a browser's thread

    @property
    def is_possible(self) -> bool:
        """Whether a GPU could reach these figures in a run as the browser makes it."""
        readings = [reading.seconds for reading in self.readings]
        readings += [self.unwaited, self.waited, self.there, self.back]
        names = {(work.kind, work.size) for work in self.works}
        return (
            self.kind in KINDS
            and len(names) == len(self.works)
            and len(self.left_out) <= sum(map(len, WORKS.values()))
            and all(size in WORKS.get(kind, ()) for kind, size in names)
            and {"product", "forward"} <= {kind for kind, _ in names}
            and all(len(seconds) == ROUNDS for seconds in readings)
            and all(0 < seconds <= LONGEST_SECONDS for seconds in chain(*readings))
            and len(self.losses) in (0, STEPS)
            and all(0 <= loss < 1e6 for loss in self.losses)
            and len(self.paces) <= MOST_PACES
            and all(0 < pace < 1e9 for pace in self.paces)
            and self.speed < MOST_FLOPS
        )

    def of(self, kind: str) -> list[Work]:
        return [work for work in self.works if work.kind == kind]

    def compared(self, kind: str) -> list[Work]:
        return [work for work in self.of(kind) if work.cpu]

    @property
    def crossover(self) -> int | None:
        """The size from which on the GPU wins all products; None if there is none."""
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
        return max(speeds)

    @property
    def readings(self) -> list[Reading]:
        """The times of both sides, without the CPU's where it would take too long."""
        sides = YOURS, NAMES[self.against]
        return [
            Reading(who, work.kind, work.size, seconds)
            for work in self.works
            for who, seconds in zip(sides, (work.gpu, work.cpu), strict=True)
            if seconds
        ]

    def rows(self) -> list[Row]:
        """A row for each piece of work and who did it."""
        name = f"{self.name} (according to the browser)"
        gpu = Environment("webgpu", name, "WebGPU", 1, "", "", "")
        cpu = self.environment or replace(gpu, device_name="CPU")
        rows = []
        for who, work, size, seconds in self.readings:
            label, where = ("browser's GPU", gpu) if who == YOURS else (who, cpu)
            rows.append(row(label, seconds, where, self.date, work=work, size=size))
        return rows


def literal(name: Any) -> str:
    """A browser's name for a GPU: a short line without control characters."""
    plain = "".join(c if c.isprintable() else " " for c in str(name))
    return " ".join(plain.split())[:LONGEST_NAME] or "a GPU without a name"


def read(
    message: dict[str, Any], environment: Environment | None = None, **facts: Any
) -> BrowserGpu:
    """Combine the browser's message with `facts` from here. Raises ValueError."""
    from cattrs import Converter

    try:
        fields = message | facts | {"name": literal(message["name"]), "date": now()}
        gpu = Converter(detailed_validation=False).structure(fields, BrowserGpu)
    except Exception as error:  # the classes raise many kinds of errors for bad fields
        raise ValueError(f"The browser's figures can't be read: {error}") from error
    if not gpu.is_possible:
        raise ValueError("The browser sent figures that no GPU could reach.")
    return replace(gpu, environment=environment)
