"""What a browser says that its GPU did: plain data, bounded, without torch.

Nothing of it is believed: it is read field by field, and never kept among measurements.
"""

import math
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from core.measure.environment import Environment, now
from core.measure.rows import Row, row
from core.measure.speedup import FEWEST_REPEATS, Speedup, paired

SIZES = (64, 128, 256, 512, 1024, 2048)  # rows of the square matrices
BATCH_SIZES = (1, 10, 100, 1_000, 10_000)  # images of a forward pass
STEPS, BATCH_SIZE, LEARNING_RATE = 100, 64, 1e-3  # of the training
WORKS = {"product": SIZES, "forward": BATCH_SIZES, "step": (BATCH_SIZE,)}
ROUNDS = 7  # counted, after a warm-up
CLOSE, SAME_CLASSES, SAME_LOSS = 1e-4, 0.999, 1e-3  # else there is no time to show
LONGEST_NAME, LONGEST_SECONDS, MOST_READINGS = 60, 600.0, 60
KINDS = ("computer", "phone or tablet", "software")
NAMES = {"torch": "This machine's CPU", "browser": "Browser, one thread"}


@dataclass(frozen=True)
class Work:
    """A piece of work, done in turn by the GPU and by what it is compared with."""

    kind: str  # one of WORKS
    size: int
    gpu: tuple[float, ...]  # seconds of each round
    cpu: tuple[float, ...]  # likewise; none: the browser would take too long

    @property
    def speedup(self) -> Speedup | None:
        """How many times as fast the GPU is."""
        return paired(self.cpu, self.gpu) if self.cpu else None


@dataclass(frozen=True)
class BrowserGpu:
    """All that a browser's GPU did, as the browser claims."""

    name: str
    kind: str  # one of KINDS
    against: str  # one of NAMES
    works: tuple[Work, ...]
    left_out: tuple[tuple[str, int, str], ...]  # kind, size, "wrong", "slow" or "large"
    losses: tuple[float, ...]  # of the training steps, none if they are wrong
    expected: tuple[float, ...]  # torch's, from the same weights and batches
    unwaited: tuple[float, ...]  # seconds of a product on a clock that doesn't wait
    waited: tuple[float, ...]  # likewise on one that does
    clocked: int  # size of that product
    there: tuple[float, ...]  # seconds of moving all test images to the GPU
    back: tuple[float, ...]  # seconds of fetching their logits
    paces: tuple[float, ...]  # products a second, in each second of steady work
    environment: Environment | None  # of the CPU; None: the browser's own thread
    date: str
    own_weights: bool  # of the learner's run

    @property
    def is_software(self) -> bool:
        return self.kind == "software"

    def of(self, kind: str) -> list[Work]:
        return [work for work in self.works if work.kind == kind]

    def crossover(self, kind: str) -> int | None:
        """The smallest size from which on the GPU wins everywhere that was compared."""
        first = None
        for work in reversed(self.of(kind)):
            if work.speedup and work.speedup.winner != 1:
                break
            if work.speedup:
                first = work.size
        return first

    @property
    def speed(self) -> float | None:
        """Most floating-point operations a second in a product."""
        speeds = [
            2 * work.size**3 / sorted(work.gpu)[len(work.gpu) // 2]
            for work in self.of("product")
        ]
        return max(speeds, default=None)

    def rows(self) -> list[Row]:
        """A row for each piece of work and who did it."""
        here = Environment("webgpu", claimed_by(self.name), "WebGPU", 1, "", "", "")
        found = []
        for work in self.works:
            about = {"work": work.kind, "size": work.size}
            found.append(row("browser's GPU", work.gpu, here, self.date, **about))
            if work.cpu:
                cpu = self.environment or here
                who = NAMES[self.against]
                found.append(row(who, work.cpu, cpu, self.date, **about))
        return found


def claimed_by(name: str) -> str:
    return f"{name} (as the browser claims)"


def literal(text: Any) -> str:
    """A short name without control characters: whatever a browser says."""
    said = text if isinstance(text, str) else ""
    plain = "".join(c if unicodedata.category(c)[0] != "C" else " " for c in said)
    return " ".join(plain.split())[:LONGEST_NAME] or "A GPU without a name"


def numbers(values: Any, most: int = MOST_READINGS) -> tuple[float, ...]:
    """Finite numbers above 0. ValueError for anything else."""
    if not isinstance(values, list) or len(values) > most:
        raise ValueError(f"not a list of at most {most}")
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError("not a number")
        if not math.isfinite(value) or not 0 < value < 1e12:
            raise ValueError("a number out of bounds")
    return tuple(map(float, values))


def seconds(values: Any) -> tuple[float, ...]:
    found = numbers(values)
    if found and max(found) > LONGEST_SECONDS:
        raise ValueError("a time out of bounds")
    return found


def read(
    said: Any,
    against: str,
    expected: Sequence[float],
    own_weights: bool,
    cpu: Sequence[tuple[Any, Sequence[float]]] = (),
    environment: Environment | None = None,
) -> BrowserGpu:
    """What the browser said, bounded; ValueError where that is impossible.

    `cpu` has this machine's rounds, (works, seconds), the warm-up first.
    """
    try:
        works = tuple(
            _works(said["works"], [dict(zip(*each, strict=True)) for each in cpu])
        )
        left_out = tuple(
            (kind, size, why)
            for kind, size, why in said["left_out"][:20]
            if size in WORKS[kind] and why in ("wrong", "slow", "large")
        )
        losses = numbers(said["losses"], STEPS)
        agrees = losses and abs(losses[-1] - expected[-1]) <= SAME_LOSS
        return BrowserGpu(
            literal(said["name"]),
            KINDS[KINDS.index(said["kind"])],
            against,
            works,
            left_out,
            losses if agrees else (),
            tuple(expected),
            seconds(said["unwaited"]),
            seconds(said["waited"]),
            SIZES[SIZES.index(said["clocked"])],
            seconds(said["there"]),
            seconds(said["back"]),
            numbers(said["paces"]),
            environment,
            now(),
            own_weights,
        )
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"The browser sent figures that can't be read: {error}."
        ) from None


def _works(said: Any, rounds: Sequence[dict[Any, float]]) -> Iterator[Work]:
    """Each piece of work once, with as many rounds of both as there are."""
    seen = set()
    for each in said[: sum(map(len, WORKS.values()))]:
        kind, size = name = each["kind"], each["size"]
        if size not in WORKS[kind] or name in seen:
            raise ValueError("no such work")
        seen.add(name)
        gpu, other = seconds(each["gpu"]), seconds(each["cpu"])
        if rounds:
            other = tuple(times[name] for times in rounds[1:] if name in times)
        n = min(len(gpu), len(other) or len(gpu))
        if n >= FEWEST_REPEATS:
            yield Work(kind, size, gpu[:n], other[:n])
