"""Two candidates and what a comparison of them says: plain data, without torch.

Who wins is decided here, from measured seconds; they are measured in core.compare.race,
core.compare.crossover, core.compare.timing_pitfalls and core.compare.step_profile.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from statistics import fmean, median
from typing import ClassVar

from core.compare.candidates import Candidate
from core.config import RunConfig
from core.measure.environment import Environment
from core.measure.rows import Row, pick, row
from core.measure.speedup import Speedup, paired, speedup
from core.results import LossPoint

# Training steps of a trial: a fraction of a second on an idle laptop's CPU.
RACE_STEPS = {"ann": 300, "cnn": 50}


@dataclass(frozen=True)
class RaceStarted:
    """A race begins."""

    candidates: tuple[Candidate, Candidate]
    config: RunConfig  # its device and epochs do not count
    steps: int  # of training in each trial, at most
    repeats: int


@dataclass(frozen=True)
class TrialProgress:
    """Some steps of a trial were made."""

    passes: ClassVar[bool] = True  # of interest until the next one, but for its losses
    candidate: int  # 0 or 1
    repeat: int  # 0 is the warm-up
    step: int  # made so far in this trial
    steps: int  # in the whole trial
    losses: tuple[LossPoint, ...]  # of the steps since the last report


@dataclass(frozen=True)
class Trial:
    """One training and one evaluation of one candidate."""

    candidate: int  # 0 or 1
    repeat: int  # 0 is the warm-up
    steps: int  # of training
    train_seconds: float
    train_samples: int
    evaluate_seconds: float
    evaluate_samples: int
    joules: float | None  # of the whole GPU, as NVML counts them; None: nothing counts
    losses: tuple[LossPoint, ...]

    @property
    def seconds(self) -> float:
        return self.train_seconds + self.evaluate_seconds


@dataclass(frozen=True)
class CandidateFailure:
    """A candidate that did not come to the end."""

    candidate: int
    message: str


# What has a speed-up of its own, with how its figures begin in a Trial.
LOOPS = {"training": "train_", "evaluation": "evaluate_", "both": ""}


@dataclass(frozen=True)
class Race:
    """Two candidates over the same steps, as far as it has come."""

    candidates: tuple[Candidate, Candidate]
    environments: tuple[Environment | None, Environment | None]  # None: it never began
    config: RunConfig
    steps: int  # of training in each counted trial
    repeats: int  # that were asked for; a slow race ends with fewer
    trials: tuple[Trial, ...]
    failures: tuple[CandidateFailure, ...]
    date: str

    @property
    def has_two_machines(self) -> bool:
        """Whether each candidate is on a machine of its own."""
        return self.candidates[0].host != self.candidates[1].host

    def without_losses(self) -> "Race":
        """For a record: they are many, and say nothing of speed."""
        trials = (replace(each, losses=()) for each in self.trials)
        return replace(self, trials=tuple(trials))

    def counted(self, candidate: int) -> list[Trial]:
        """The trials of a candidate after its warm-up, in order."""
        return [h for h in self.trials if h.candidate == candidate and h.repeat]

    def seconds(self, candidate: int, loop: str) -> list[float]:
        """Of each counted trial, for one of LOOPS."""
        name = f"{LOOPS[loop]}seconds"
        return [getattr(trial, name) for trial in self.counted(candidate)]

    def speedup(self, loop: str = "both") -> Speedup | None:
        """Of the second candidate over the first."""
        return speedup(self.seconds(0, loop), self.seconds(1, loop))

    def rows(self) -> list[Row]:
        """A row a candidate and loop; the warm-up has rows of its own, with n = 1."""
        rows = []
        for index, candidate in enumerate(self.candidates):
            environment = self.environments[index]
            warm_up = [t for t in self.trials if t.candidate == index and not t.repeat]
            for trials, note in ((self.counted(index), ""), (warm_up, ", warm-up")):
                if environment is None or not trials:
                    continue
                joules = [t.joules for t in trials if t.joules is not None]
                for loop in ("training", "evaluation"):
                    name = LOOPS[loop]
                    seconds = [getattr(trial, f"{name}seconds") for trial in trials]
                    rate = getattr(trials[0], f"{name}samples") / median(seconds)
                    found = row(
                        f"{loop}{note}",
                        seconds,
                        environment,
                        self.date,
                        contender=candidate.name,
                        **pick(self.config, "task model batch_size"),
                        steps=trials[0].steps if note else self.steps,
                        seed=self.config.seed,
                        joules_a_heat=median(joules) if joules else None,
                        samples_per_second=None if note else rate,
                    )
                    rows.append(found)
        return rows


WIDTHS = tuple(2**power for power in range(5, 13))  # 32 to 4096 hidden units
BATCH_SIZES = tuple(2**power for power in range(4, 13))  # 16 to 4096


@dataclass(frozen=True)
class Cell:
    """A training step of one width at one batch size, timed on both candidates."""

    width: int  # hidden units
    batch_size: int
    first: tuple[float, ...]  # seconds of a step, one for each repeat
    second: tuple[float, ...]  # the same repeats of the second candidate

    @property
    def speedup(self) -> Speedup:
        """Of the second candidate over the first."""
        return paired(self.first, self.second)


@dataclass(frozen=True)
class Crossover:
    """Who is faster at which size."""

    candidates: tuple[Candidate, Candidate]
    environments: tuple[Environment, Environment]
    cells: tuple[Cell, ...]
    planned: int  # cells of the whole map
    budget_seconds: float
    stopped: str  # why cells are missing, where it was not for the time
    date: str

    def rows(self) -> list[Row]:
        """A row a cell and candidate, with the speed-up of the cell."""
        return [
            row(
                "training step",
                seconds,
                self.environments[index],
                self.date,
                contender=self.candidates[index].name,
                **pick(cell, "width batch_size speedup_of_second=speedup.median"),
                speedup_least=cell.speedup.interval[0],
                speedup_most=cell.speedup.interval[1],
            )
            for cell in self.cells
            for index, seconds in enumerate((cell.first, cell.second))
        ]


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
    queueing: tuple[float, ...]  # a synchronized reading over a naive one, in turn
    threads: tuple[ThreadReading, ...]  # on the CPU; their repeats in turn
    environment: Environment
    cpu_environment: Environment
    date: str

    def rows(self) -> list[Row]:
        """Two rows a way, the first call apart; a row a size and number of threads."""
        about = pick(self, "environment date size")
        calls = [
            row(what, seconds, way=each.way, **about)
            for each in self.readings
            for what, seconds in (
                ("first call", each.seconds[:1]),
                ("later calls", each.seconds[1:]),
            )
        ]
        cpu, date = self.cpu_environment, self.date
        threads = [
            row("multiplication", each.seconds, where, date, way=None, size=each.size)
            for each in self.threads
            for where in [replace(cpu, threads=each.threads)]
        ]
        return calls + threads


PARTS = ("load", "copy", "forward", "backward", "optimizer")
HOST, DEVICE = "host", "device"


@dataclass(frozen=True)
class Span:
    """When one of PARTS went on in a step that waits for nothing, and where."""

    lane: str  # HOST, which asks for work, or DEVICE, which does it
    part: str
    start: float  # seconds since the step began
    end: float


@dataclass(frozen=True)
class StepProfile:
    """Training steps with one feed on one device, taken apart."""

    feed: str
    parts: dict[str, tuple[float, ...]]  # PARTS to the seconds in each step
    step: tuple[float, ...]  # seconds of each whole step, profiled as the parts are
    unprofiled: tuple[float, ...]  # seconds of such steps when nobody looks
    config: RunConfig
    environment: Environment
    date: str
    trace: bytes | None = None  # Chrome's format, gzipped; None: of a record
    timeline: tuple[Span, ...] = ()  # of a typical step, where a device works beside

    def __post_init__(self) -> None:
        if self.parts.keys() != set(PARTS):  # a damaged record
            raise ValueError(f"a step has the parts {', '.join(PARTS)}")

    def rows(self) -> list[Row]:
        """A row a part, and two for the whole step."""
        about = pick(self, "environment date feed")
        about |= pick(self.config, "task model batch_size")
        whole = {"whole step": self.step, "whole step, not profiled": self.unprofiled}
        readings = self.parts | whole
        return [row(what, seconds, **about) for what, seconds in readings.items()]

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
    def overlaps(self) -> bool:
        """Whether a device works through a queue of its own while the host goes on."""
        return any(span.lane == DEVICE for span in self.timeline)

    @property
    def spans(self) -> tuple[Span, ...]:
        """The timeline where two lanes overlap, else the typical parts in a row.

        What is drawn, and what is said of it, come from these alone.
        """
        if self.overlaps:
            return self.timeline
        ends = list(accumulate(map(self.typical, PARTS), initial=0.0))
        return tuple(
            Span(HOST, part, *ends[place : place + 2])
            for place, part in enumerate(PARTS)
        )

    def stopwatch(self, lane: str) -> float:
        """What a clock reads that is stopped when that lane has nothing more to do."""
        ends = [each.end for each in self.spans if each.lane in (HOST, lane)]
        return max(ends)

    @property
    def seconds(self) -> float:
        """Of the step, until neither lane has anything left to do."""
        return self.stopwatch(DEVICE)

    @property
    def _longest(self) -> Span:
        return max(self.spans, key=lambda span: span.end - span.start)

    @property
    def largest(self) -> str:
        """The part that takes longest."""
        return self._longest.part

    @property
    def share(self) -> float:
        """Of the step, what the largest part takes."""
        return (self._longest.end - self._longest.start) / self.seconds

    @property
    def covered(self) -> float:
        """What the parts add up to, as a share of the step: the median over steps.

        Between two ranges there is only the profiler, unless another program takes the
        core just there.
        """
        sums = map(sum, zip(*self.parts.values(), strict=True))
        return median(a / b for a, b in zip(sums, self.step, strict=True))
