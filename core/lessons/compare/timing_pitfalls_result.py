"""Readings of the same operation, timed in several ways: plain data, without torch."""

from dataclasses import dataclass, replace
from statistics import fmean, median, quantiles

from core.measure.environment import Environment
from core.measure.rows import Row, pick, row
from core.measure.speedup import CLOSE, MOMENTS, STEADY, Speedup, agree, unevenness
from core.registry import stored


@stored("timing_reading")
@dataclass(frozen=True)
class Reading:
    way: str  # one of WAYS
    seconds: tuple[float, ...]  # each call, in order, the first one included


WAYS = ("naive", "synchronize", "synchronize and warm-up")


@dataclass(frozen=True)
class ThreadReading:
    size: int  # rows of the square matrices
    threads: int
    seconds: tuple[float, ...]


@stored("timing")
@dataclass(frozen=True)
class TimingLab:
    device: str
    size: int
    readings: tuple[Reading, ...]
    queueing: tuple[float, ...]  # ratios: a synchronized call's time to a naive one's
    threads: tuple[ThreadReading, ...]  # on the CPU, with one thread and with all
    environment: Environment
    cpu_environment: Environment
    date: str

    @property
    def first_call(self) -> Speedup:
        """The first synchronized call's time as a multiple of the later calls' median.

        The interval's low end is the first call's time divided by the slowest later
        call's. Its high end is divided by the later calls' lower quartile.
        """
        (first, *later) = next(
            r.seconds for r in self.readings if r.way == "synchronize"
        )
        quartile = quantiles(later, method="inclusive")[0]
        return Speedup(first / median(later), (first / max(later), first / quartile))

    @property
    def stands_out(self) -> bool:
        """Whether the first call took clearly longer than any later one."""
        return self.first_call.interval[0] > CLOSE

    @property
    def is_steady(self) -> bool:
        """Whether the later calls agree, as they do if nothing else was running.

        Each way's calls have to agree, and so do the medians of the ways that time the
        same work: on the CPU, where no call waits in a queue, all of them.
        """
        alike = WAYS if self.environment.backend == "CPU" else WAYS[1:]
        calls = [r.seconds[1:] for r in self.readings if r.way in alike]
        return agree([median(seconds) for seconds in calls], MOMENTS) and all(
            unevenness(seconds) <= STEADY for seconds in calls
        )

    def rows(self) -> list[Row]:
        """Rows for the ways of timing, and for the CPU's sizes and numbers of threads.

        A way has two rows: for its first call, and for its later calls.
        """
        about = pick(self, "environment date size")
        calls = [
            row(name, seconds, way=reading.way, **about)
            for reading in self.readings
            for name, seconds in (
                ("first call", reading.seconds[:1]),
                ("later calls", reading.seconds[1:]),
            )
        ]
        threads = [
            row(
                "multiplication",
                reading.seconds,
                replace(self.cpu_environment, threads=reading.threads),
                self.date,
                way=None,
                size=reading.size,
            )
            for reading in self.threads
        ]
        return calls + threads


def misleading(lab: TimingLab) -> dict[str, bool]:
    """For each way, whether the mean of all calls misleads."""
    return {r.way: misleads(lab, r.way, fmean(r.seconds)) for r in lab.readings}


def misleads(lab: TimingLab, way: str, seconds: float) -> bool:
    """Whether a time that a way of timing gives is off by a quarter or more.

    The truth is the median of the calls that were synchronized and warmed up. On the
    CPU, only a first call that stands out can mislead.
    """
    truth = median(next(r.seconds for r in lab.readings if r.way == WAYS[-1]))
    can = lab.environment.backend != "CPU" or lab.stands_out
    return can and way != WAYS[-1] and not agree((seconds, truth), MOMENTS)
