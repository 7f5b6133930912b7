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
from core.registry import stored

SIZES = (64, 128, 256, 512, 1024, 2048)  # rows of the square matrices
BATCH_SIZES = (1, 10, 100, 1_000, 10_000)  # images of a forward pass
STEPS, BATCH_SIZE = 100, 64  # steps of the training, and images in each
WORKS = {"product": SIZES, "forward": BATCH_SIZES, "step": (BATCH_SIZE,)}
ROUNDS, BUSY_SECONDS = 7, 15  # as in your_gpu.js
LONGEST_NAME, LONGEST_SECONDS, MOST_FLOPS = 60, 600, 1e15
KINDS = ("computer", "phone or tablet", "software")
YOURS = "Your GPU"
NAMES = {"torch": "PyTorch, CPU", "browser": "Browser, one thread"}


class Reading(NamedTuple):
    who: str  # YOURS or one of NAMES' values
    where: Environment
    work: str  # one of WORKS
    size: int
    seconds: tuple[float, ...]


@dataclass(frozen=True)
class Work:
    """A piece of work, done in turn by the GPU and by its opponent."""

    kind: str  # one of WORKS
    size: int
    gpu: tuple[float, ...]  # seconds of each round
    cpu: tuple[float, ...]  # the opponent's seconds; empty if it would take too long

    @property
    def seconds(self) -> float:
        return median(self.gpu)

    @property
    def speedup(self) -> Speedup | None:
        """The GPU's speedup; None if the opponent's time wasn't measured."""
        return paired(self.cpu, self.gpu) if self.cpu else None

    @property
    def note(self) -> str:
        """Why there is no winner, as a key of the notes in words.toml; or else ""."""
        if self.speedup is None:
            return "alone" if self.kind in ("product", "forward") else ""
        return "tied" if self.speedup.winner is None else ""


@stored("browser_gpu")
@dataclass(frozen=True)
class BrowserGpu:
    """What the browser claims."""

    name: str
    kind: str  # one of KINDS
    works: tuple[Work, ...]  # works of one kind go from small to large
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
    environment: Environment | None = None  # the CPU's; None for a browser's thread

    @property
    def is_possible(self) -> bool:
        """Whether a GPU could get these figures by running your_gpu.js."""
        readings = [reading.seconds for reading in self.readings]
        readings += [self.unwaited, self.waited, self.there, self.back]
        names = [(work.kind, work.size) for work in self.works]
        names += [(kind, size) for kind, size, _ in self.left_out]
        return (
            self.kind in KINDS
            and len(set(names)) == len(names)
            and all(size in WORKS.get(kind, ()) for kind, size in names)
            and all(work.gpu for work in self.works)
            and all(self.of(kind) for kind in ("product", "forward"))
            and all(len(seconds) == ROUNDS for seconds in readings)
            and all(0 < seconds <= LONGEST_SECONDS for seconds in chain(*readings))
            and len(self.losses) in (0, STEPS)
            and len(self.paces) in (0, BUSY_SECONDS)
            and all(0 < figure < 1e9 for figure in self.losses + self.paces)
            and self.speed < MOST_FLOPS
        )

    def of(self, kind: str) -> list[Work]:
        return [work for work in self.works if work.kind == kind]

    @property
    def winners(self) -> dict[int, int | None]:
        """Map each product's size to its winner, as in Speedup.winner.

        Sizes at which only the GPU was timed are left out.
        """
        products = ((work.size, work.speedup) for work in self.of("product"))
        return {size: speedup.winner for size, speedup in products if speedup}

    @property
    def crossover(self) -> int | None:
        """The size from which on the GPU wins all products; None if there is none."""
        lost = max((n for n, winner in self.winners.items() if winner != 1), default=0)
        return min((n for n in self.winners if n > lost), default=None)

    @property
    def outcome(self) -> str:
        """Where the GPU wins: "everywhere", "above", "nowhere", "unclear" or "alone".

        "Alone" means that nothing was compared.
        """
        if not (winners := set(self.winners.values())):
            return "alone"
        if self.crossover:
            return "everywhere" if winners == {1} else "above"
        return "nowhere" if winners == {0} else "unclear"

    @property
    def speed(self) -> float:
        """The highest number of floating-point operations a second in a product."""
        return max(2 * work.size**3 / work.seconds for work in self.of("product"))

    @property
    def endurance(self) -> float:
        """How well the GPU keeps its speed in steady work: 1 if it loses none.

        The speed in the last five seconds, divided by that in the first five.
        """
        return median(self.paces[-5:]) / median(self.paces[:5])

    @property
    def opponent(self) -> str:
        return NAMES[self.against]

    @property
    def readings(self) -> list[Reading]:
        """The times of both sides, without the CPU's where it would take too long."""
        name = f"{self.name} (according to the browser)"
        gpu = Environment("webgpu", name, "WebGPU", 1, "", "", "")
        cpu = self.environment or replace(gpu, device_name="CPU")
        return [
            Reading(who, where, work.kind, work.size, seconds)
            for work in self.works
            for who, where, seconds in (
                (YOURS, gpu, work.gpu),
                (self.opponent, cpu, work.cpu),
            )
            if seconds
        ]

    def rows(self) -> list[Row]:
        return [
            row(who, seconds, where, self.date, work=work, size=size)
            for who, where, work, size, seconds in self.readings
        ]


def literal(name: Any) -> str:
    """A browser's name for a GPU: a short line without control characters."""
    plain = "".join(c if c.isprintable() else " " for c in str(name)[:1000])
    return " ".join(plain.split())[:LONGEST_NAME] or "a GPU without a name"


def read(
    message: dict[str, Any], environment: Environment | None = None, **facts: Any
) -> BrowserGpu:
    """Combine the browser's message with the server's `facts`.

    Raises ValueError if the figures are malformed or impossible.
    """
    from cattrs import Converter

    try:
        fields = message | facts | {"name": literal(message["name"]), "date": now()}
        gpu = Converter(detailed_validation=False).structure(fields, BrowserGpu)
    except Exception as error:  # the classes raise many kinds of errors for bad fields
        raise ValueError(f"The browser's figures can't be read: {error}") from error
    if not gpu.is_possible:
        raise ValueError("The browser sent figures that no GPU could reach.")
    return replace(gpu, environment=environment)
