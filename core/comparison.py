"""Two contenders and what a comparison of them says: plain data, without torch.

Who wins is decided here, from measured seconds; they are measured in core.race,
core.crossover, core.pitfalls and core.breakdown.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from statistics import fmean, median
from typing import Any

from core.config import RunConfig
from core.reports import Loss

Environment = dict[str, Any]  # see core.device.environment
FEWEST_REPEATS = 3  # with fewer, chance alone names a winner every second time


@dataclass(frozen=True)
class Contender:
    """A device, with the CPU threads that its process may use."""

    device: str  # as core.device.resolve takes it
    backend: str  # "CPU", "CUDA", ...
    name: str  # "CPU, 1 thread", "NVIDIA H200"
    threads: int


def cpu(threads: int) -> Contender:
    """The CPU with so many threads."""
    return Contender(
        "cpu", "CPU", f"CPU, {threads} thread{'s' * (threads != 1)}", threads
    )


def contenders(machine: dict[str, Any]) -> list[Contender]:
    """Who can race on a machine that core.device.describe has described.

    The accelerators, then the CPU with all usable cores, all but one, and the powers of
    two below.
    """
    cores = machine["usable_cores"]
    found = [
        Contender(each["device"], each["backend"], each["device_name"], spare(cores))
        for each in machine["devices"]
        if each["backend"] != "CPU"
    ]
    counts = {cores, spare(cores), *(2**p for p in range(cores.bit_length() - 1))}
    return found + [cpu(threads) for threads in sorted(counts, reverse=True)]


def spare(cores: int) -> int:
    """All cores but the one that the server and the browser need."""
    return max(1, cores - 1)


def default_pair(found: Sequence[Contender]) -> tuple[Contender, Contender]:
    """CPU and accelerator where there is one, else one CPU thread and all of them.

    The CPU races an accelerator with as many threads as the app trains with: beating
    one that was held back would say nothing.
    """
    if found[0].backend != "CPU":
        return cpu(found[0].threads), found[0]
    return found[-1], found[0]


def tell_apart(first: Contender, second: Contender) -> tuple[Contender, Contender]:
    """The pair; a contender that races itself gets a second name."""
    if first == second:
        second = replace(second, name=f"{second.name}, again")
    return first, second


@dataclass(frozen=True)
class Speedup:
    """How many times as fast the second contender is as the first."""

    ratios: tuple[float, ...]  # of paired repeats: seconds of the first over the second

    @property
    def n(self) -> int:
        return len(self.ratios)

    @property
    def median(self) -> float:
        return median(self.ratios)

    @property
    def interval(self) -> tuple[float, float]:
        """Least and most of the ratios."""
        return min(self.ratios), max(self.ratios)

    @property
    def confidence(self) -> float:
        """How often such an interval holds the true median, whatever the distribution.

        It misses only where all n ratios fall on one side of it: 1 - 2 (1/2)^n. This is
        the interval of the sign test.
        """
        return 1 - 2 * 0.5**self.n

    @property
    def winner(self) -> int | None:
        """0 or 1; None where it is too close to call."""
        low, high = self.interval
        if self.n < FEWEST_REPEATS or low <= 1 <= high:
            return None
        return 1 if low > 1 else 0


def speedup(first: Sequence[float], second: Sequence[float]) -> Speedup | None:
    """From the seconds of paired repeats; None where there is no pair."""
    pairs = zip(first, second, strict=False)
    ratios = tuple(a / b for a, b in pairs)
    return Speedup(ratios) if ratios else None


def now() -> str:
    """The date that stands with a figure: ISO 8601, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


# The race

# Training steps of a heat: a fraction of a second on an idle laptop's CPU.
RACE_STEPS = {"ann": 300, "cnn": 50}


@dataclass(frozen=True)
class RaceStarted:
    """A race begins."""

    contenders: tuple[Contender, Contender]
    config: RunConfig  # its device and epochs do not count
    steps: int  # of training in each heat, at most
    repeats: int


@dataclass(frozen=True)
class Lap:
    """Some steps of a heat were made."""

    contender: int  # 0 or 1
    repeat: int  # 0 is the warm-up
    step: int  # made so far in this heat
    steps: int  # in the whole heat
    losses: tuple[Loss, ...]  # of the steps since the last report


@dataclass(frozen=True)
class Heat:
    """One training and one evaluation of one contender."""

    contender: int  # 0 or 1
    repeat: int  # 0 is the warm-up
    steps: int  # of training
    train_seconds: float
    train_samples: int
    evaluate_seconds: float
    evaluate_samples: int
    joules: float | None  # of the whole GPU, as NVML counts them; None: nothing counts
    losses: tuple[Loss, ...]

    @property
    def seconds(self) -> float:
        return self.train_seconds + self.evaluate_seconds


@dataclass(frozen=True)
class Failure:
    """A contender that did not come to the end."""

    contender: int
    message: str


LOOPS = ("training", "evaluation", "both")  # what has a speed-up of its own


@dataclass(frozen=True)
class Race:
    """Two contenders over the same steps, as far as it has come."""

    contenders: tuple[Contender, Contender]
    environments: tuple[Environment | None, Environment | None]  # None: it never began
    config: RunConfig
    steps: int  # of training in each counted heat
    repeats: int  # that were asked for; a slow race ends with fewer
    heats: tuple[Heat, ...]
    failures: tuple[Failure, ...]
    date: str

    def counted(self, contender: int) -> list[Heat]:
        """The heats of a contender after its warm-up, in order."""
        return [h for h in self.heats if h.contender == contender and h.repeat]

    def seconds(self, contender: int, loop: str) -> list[float]:
        """Of each counted heat, for one of LOOPS."""
        heats = self.counted(contender)
        if loop == "training":
            return [heat.train_seconds for heat in heats]
        if loop == "evaluation":
            return [heat.evaluate_seconds for heat in heats]
        return [heat.seconds for heat in heats]

    def speedup(self, loop: str = "both") -> Speedup | None:
        """Of the second contender over the first."""
        return speedup(self.seconds(0, loop), self.seconds(1, loop))


def verdict(race: Race) -> str:
    """Who wins, by how much and why, in words."""
    for failure in race.failures:
        name = race.contenders[failure.contender].name
        return f"There is no winner: {name} did not come to the end."
    found = race.speedup()
    if found is None:
        return "There is no winner: nothing was measured."
    low, high = found.interval
    if found.winner is None:
        return (
            "**Too close to call on this machine.** From repeat to repeat, "
            f"{race.contenders[1].name} is {low:.2f} to {high:.2f} times as fast as "
            f"{race.contenders[0].name}."
        )
    winner, loser = race.contenders[found.winner], race.contenders[1 - found.winner]
    factor = found.median
    if found.winner == 0:
        factor, low, high = 1 / factor, 1 / high, 1 / low
    return (
        f"**{winner.name} wins: it is {factor:.2f} times as fast as {loser.name}** "
        f"({low:.2f} to {high:.2f} over {found.n} pairs of repeats). "
        f"{why(race, found.winner)}"
    )


SMALL_STEP_MS = 5.0  # an operation of it takes some hundred microseconds


def why(race: Race, winner: int) -> str:
    """What speaks for it, from the time of a step."""
    won, lost = race.contenders[winner], race.contenders[1 - winner]
    step = median(race.seconds(winner, "training")) / race.steps * 1e3
    batch = race.config.batch_size
    if won.backend == lost.backend == "CPU":
        if won.threads > lost.threads:
            return (
                f"A batch of {batch:,} has enough arithmetic to be shared: "
                f"{won.threads / lost.threads:g} times the threads could bring that "
                "much at best, and the parts that are not shared take their toll."
            )
        if won.threads < lost.threads and step < SMALL_STEP_MS:
            return (
                f"A step takes only {step:.2g} ms. Threads split each operation of it "
                "and then wait for the slowest of them, also for one that lost its "
                "core to another program."
            )
        if won.threads < lost.threads:
            return (
                f"A step of {step:.2g} ms is worth sharing, so there was no free core "
                "for every thread: all wait for the one that shares its core with "
                "another program. Race again when the machine is idle."
            )
        return "Both are the same device, so the machine itself has changed meanwhile."
    if lost.backend == "CPU":
        return (
            f"A step of {batch:,} images takes it {step:.2g} ms: the arithmetic of a "
            "batch is done side by side, which pays for the copy and for starting each "
            "operation."
        )
    return (
        "Each operation costs an accelerator some microseconds to start, however small "
        f"it is, and a batch of {batch:,} is small. The map at the end of this page "
        "shows from where on that turns."
    )


AGREE = 0.01  # of the loss; more is seen on the chart


def agreement(race: Race) -> str:
    """Whether the loss curves agree, in words, and if not, why not."""
    curves = [next((h.losses for h in race.counted(c)), ()) for c in (0, 1)]
    pairs = list(zip(*curves, strict=False))
    if not pairs:
        return ""
    apart = [abs(a.loss - b.loss) / max(abs(a.loss), abs(b.loss)) for a, b in pairs]
    start, most = apart[0], max(apart)
    devices = {contender.device for contender in race.contenders}
    if most == 0:
        return "Over steps, the two curves are the same, bit for bit."
    if most < AGREE:
        return (
            f"Over steps, the two curves agree within {most:.1g} of the loss. What is "
            "left is rounding: they add the same numbers in another order."
        )
    if race.config.model == "cnn" and len(devices) > 1:
        return (
            f"Over steps, the two curves differ by up to {most:.1%}. Weights and "
            "batches are the same, but dropout draws from each device's own random "
            "numbers, so each trains with other masks."
        )
    return (
        f"Over steps, the two curves start {start:.1g} apart and end up to {most:.1%} "
        "apart. Weights and batches are the same; they add the same numbers in another "
        "order, and each step makes that rounding grow."
    )


# The crossover map


@dataclass(frozen=True)
class Cell:
    """A training step of one width at one batch size, timed on both contenders."""

    width: int  # hidden units
    batch_size: int
    first: tuple[float, ...]  # seconds of a step, one for each repeat
    second: tuple[float, ...]  # the same repeats of the second contender

    @property
    def speedup(self) -> Speedup:
        """Of the second contender over the first."""
        return Speedup(
            tuple(a / b for a, b in zip(self.first, self.second, strict=True))
        )


@dataclass(frozen=True)
class Crossover:
    """Who is faster at which size."""

    contenders: tuple[Contender, Contender]
    environments: tuple[Environment, Environment]
    cells: tuple[Cell, ...]
    planned: int  # cells of the whole map
    budget_seconds: float
    stopped: str  # why cells are missing, where it was not for the time
    date: str


def equal_points(cells: Sequence[Cell]) -> list[tuple[float, float]]:
    """Where both are equally fast, as (batch size, width).

    The logarithm of the ratio is taken as linear in the logarithm of the batch size
    between two neighbours in a row, and in that of the width between two in a column.
    """
    points = []
    by_place = {
        (math.log2(c.batch_size), math.log2(c.width)): math.log(c.speedup.median)
        for c in cells
    }
    for along in (0, 1):
        lines: dict[float, list[tuple[float, float]]] = {}
        for place, value in by_place.items():
            lines.setdefault(place[1 - along], []).append((place[along], value))
        for across, line in lines.items():
            line.sort()
            for (a, low), (b, high) in pairwise(line):
                if (low < 0) != (high < 0):
                    at = a + (b - a) * low / (low - high)
                    x, y = (at, across) if along == 0 else (across, at)
                    points.append((2**x, 2**y))
    return points


# Why is your timing wrong?


@dataclass(frozen=True)
class Reading:
    """What one way of timing has read off for the same operation."""

    way: str  # one of WAYS
    seconds: tuple[float, ...]  # of each call, in order, the first one included


WAYS = ("naive", "synchronize", "synchronize and warm-up")


@dataclass(frozen=True)
class ThreadReading:
    """An operation with one number of threads."""

    size: int  # of the square matrices
    threads: int
    seconds: tuple[float, ...]


@dataclass(frozen=True)
class TimingLab:
    """The same multiplication of two square matrices, timed in each way."""

    device: str
    size: int
    readings: tuple[Reading, ...]
    threads: tuple[ThreadReading, ...]  # on the CPU
    environment: Environment
    cpu_environment: Environment
    date: str


# Where the time goes

PARTS = ("load", "copy", "forward", "backward", "optimizer")


@dataclass(frozen=True)
class Breakdown:
    """Training steps with one feed on one device, taken apart."""

    feed: str
    parts: dict[str, tuple[float, ...]]  # PARTS to the seconds in each step
    step: tuple[float, ...]  # seconds of each whole step, profiled as the parts are
    unprofiled: tuple[float, ...]  # seconds of such steps when nobody looks
    config: RunConfig
    environment: Environment
    date: str
    trace: bytes | None = None  # Chrome's trace format, gzipped; None: too large

    def typical(self, part: str) -> float:
        """Seconds of a part, or of the whole "step", in a typical step.

        The mean over the middle half of the steps, by how long each took in all. The
        parts of the same steps add up, as their medians would not.
        """
        order = sorted(range(len(self.step)), key=self.step.__getitem__)
        quarter = len(order) // 4
        middle = order[quarter : len(order) - quarter]
        seconds = self.step if part == "step" else self.parts[part]
        return fmean(seconds[index] for index in middle)

    @property
    def largest(self) -> str:
        """The part that takes longest."""
        return max(self.parts, key=self.typical)

    @property
    def share(self) -> float:
        """Of the step, what the largest part takes."""
        return self.typical(self.largest) / self.typical("step")

    @property
    def covered(self) -> float:
        """What the parts add up to, as a share of the step: the median over steps.

        Between two ranges there is only the profiler, unless another program takes the
        core just there.
        """
        sums = map(sum, zip(*self.parts.values(), strict=True))
        return median(a / b for a, b in zip(sums, self.step, strict=True))
