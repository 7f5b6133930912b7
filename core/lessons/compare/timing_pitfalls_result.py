"""Readings of the same operation, timed in several ways: plain data, without torch."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median

from core.measure.environment import Environment
from core.measure.rows import Row, pick, row


@dataclass(frozen=True)
class Reading:
    """One way of timing an operation."""

    way: str  # one of WAYS
    seconds: tuple[float, ...]  # each call, in order, the first one included


WAYS = ("naive", "synchronize", "synchronize and warm-up")


@dataclass(frozen=True)
class ThreadReading:
    """An operation with one number of threads."""

    size: int  # rows of the square matrices
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

    @property
    def first_call(self) -> float:
        """Times a later call that the first call took, both synchronized."""
        (first, *later) = next(
            r.seconds for r in self.readings if r.way == "synchronize"
        )
        return first / median(later)

    def rows(self) -> list[Row]:
        """Two rows per way, the first call apart; a row per size and threads."""
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


def misleading(readings: Sequence[Reading]) -> dict[str, bool]:
    """By way: whether the mean of all its calls is off by a quarter or more.

    The truth is the median of what was both synchronized and warmed up.
    """
    truth = median(next(r.seconds for r in readings if r.way == WAYS[-1]))
    return {
        reading.way: reading.way != WAYS[-1]
        and not 0.75 < fmean(reading.seconds) / truth < 1.25
        for reading in readings
    }
