"""What a browser says that its GPU did: plain data, bounded, without torch.

A browser can claim anything, so none of it is kept among the measurements.
"""

from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import Any, NamedTuple

from core.measure.environment import Environment, now
from core.measure.rows import Row, row
from core.measure.speedup import Speedup, paired

SIZES = (64, 128, 256, 512, 1024, 2048)  # rows of the square matrices
BATCH_SIZES = (1, 10, 100, 1_000, 10_000)  # images of a forward pass
STEPS, BATCH_SIZE = 100, 64  # steps of the training, and images in each
COMPARED = {"product": SIZES, "forward": BATCH_SIZES, "step": (BATCH_SIZE,)}
# Further work of the GPU: products that nobody waits for, and moving a batch's data
FURTHER = {"unwaited": SIZES, "there": BATCH_SIZES, "back": BATCH_SIZES}
ROUNDS, BUSY_SECONDS = 7, 15  # as in your_gpu.js
LONGEST_NAME, LONGEST_SECONDS, MOST_FLOPS = 60, 600, 1e15
KINDS = ("computer", "phone or tablet", "software")
YOURS, TORCH, THREAD = "Your GPU", "PyTorch, CPU", "Browser, one thread"


class Reading(NamedTuple):
    who: str  # YOURS, TORCH or THREAD
    where: Environment
    work: str  # a key of COMPARED or FURTHER
    size: int
    seconds: tuple[float, ...]


@dataclass(frozen=True)
class Work:
    """A piece of work, done in turn by the GPU and by its opponent."""

    kind: str  # a key of COMPARED or FURTHER
    size: int
    gpu: tuple[float, ...] = ()  # seconds of each round; empty if it was left out
    cpu: tuple[float, ...] = ()  # the opponent's; empty if they would take too long
    left_out: str = ""  # why: "wrong" or "slow"

    @property
    def is_possible(self) -> bool:
        return self.size in (COMPARED | FURTHER).get(self.kind, ()) and all(
            len(seconds) in (0, ROUNDS)
            and all(0 < second <= LONGEST_SECONDS for second in seconds)
            for seconds in (self.gpu, self.cpu)
        )

    @property
    def seconds(self) -> float:
        # A mean if nobody waited: a coarse clock then shows 0 for most calls.
        return (fmean if self.kind == "unwaited" else median)(self.gpu)

    @property
    def speedup(self) -> Speedup | None:
        """How many times as fast the GPU is; None without an opponent."""
        return paired(self.cpu, self.gpu) if self.cpu else None

    @property
    def note(self) -> str:
        """Why there is no winner, as a key of the notes in words.toml; or else ""."""
        if self.speedup is None:
            return self.left_out or "alone" * (self.kind in ("product", "forward"))
        return "tied" * (self.speedup.winner is None)


@dataclass(frozen=True)
class BrowserGpu:
    """What the browser claims."""

    name: str
    kind: str  # one of KINDS
    works: tuple[Work, ...]
    losses: tuple[float, ...]  # one for each training step; empty if they were wrong
    paces: tuple[float, ...]  # products a second, in each second of steady work
    expected: tuple[float, ...]  # PyTorch's losses from the same weights and batches
    own_weights: bool  # the weights come from the learner's run
    date: str
    environment: Environment | None = None  # of the CPU; None for a browser's thread

    @property
    def is_possible(self) -> bool:
        """Whether a GPU could reach these figures in a run as the browser makes it."""
        return (
            self.kind in KINDS
            and len({(work.kind, work.size) for work in self.works}) == len(self.works)
            and all(work.is_possible for work in self.works)
            and all(self.of(kind) for kind in ("product", "forward", *FURTHER))
            and len(self.losses) in (0, STEPS)
            and len(self.paces) in (0, BUSY_SECONDS)
            and all(0 < figure < 1e9 for figure in self.losses + self.paces)
            and self.speed < MOST_FLOPS
        )

    def of(self, kind: str) -> list[Work]:
        """The work of a kind that was timed, from small to large."""
        return [work for work in self.works if work.kind == kind and work.gpu]

    @property
    def winners(self) -> dict[int, int | None]:
        """Return {size: winner of the product, as Speedup.winner} if both did it."""
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
        """The speed in the last five seconds of steady work, over that in the first."""
        return median(self.paces[-5:]) / median(self.paces[:5])

    @property
    def opponent(self) -> str:
        return TORCH if self.environment else THREAD

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
    plain = "".join(c if c.isprintable() else " " for c in str(name))
    return " ".join(plain.split())[:LONGEST_NAME] or "a GPU without a name"


def read(
    report: dict[str, Any], environment: Environment | None = None, **facts: Any
) -> BrowserGpu:
    """Combine the browser's report with `facts` from here. Raises ValueError."""
    from cattrs import Converter

    try:
        fields = report["result"] | {"kind": report["kind"], "date": now()}
        fields |= {"name": literal(report["name"])} | facts
        gpu = Converter(detailed_validation=False).structure(fields, BrowserGpu)
    except Exception as error:  # the classes raise many kinds of errors for bad fields
        raise ValueError(f"The browser's figures can't be read: {error}") from error
    if not gpu.is_possible:
        raise ValueError("The browser sent figures that no GPU could reach.")
    return replace(gpu, environment=environment)
