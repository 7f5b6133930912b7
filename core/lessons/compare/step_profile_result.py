"""The time of each part of a training step: plain data, without torch."""

from dataclasses import dataclass
from itertools import accumulate
from statistics import fmean

from core.config import RunConfig
from core.measure.environment import Environment
from core.measure.rows import Row, pick, row
from core.registry import stored

PARTS = ("load", "copy", "forward", "backward", "optimizer")
HOST, DEVICE = "host", "device"


@dataclass(frozen=True)
class Span:
    """When a part of the work ran, on the host or on the device."""

    lane: str  # HOST, which asks for work, or DEVICE, which does the work
    # In a StepProfile, one of PARTS. In a QueueLab, "asks", "waits" or "computes".
    part: str
    start: float  # seconds since the work began
    end: float


@stored("profile")
@dataclass(frozen=True)
class StepProfile:
    feed: str
    parts: dict[str, tuple[float, ...]]  # for each part, its seconds in each step
    step: tuple[float, ...]  # seconds of each whole step, with the profiler
    unprofiled: tuple[float, ...]  # seconds of each step in a run without the profiler
    config: RunConfig
    environment: Environment
    date: str
    trace: bytes | None = None  # Chrome's format, gzipped; None if it was left out
    timeline: tuple[Span, ...] = ()  # a typical step; empty without an accelerator

    def __post_init__(self) -> None:
        if self.parts.keys() != set(PARTS):  # the stored profile is damaged
            raise ValueError(f"a step consists of {', '.join(PARTS)}")

    def rows(self) -> list[Row]:
        """A row per part, and two for the whole step."""
        about = pick(self, "environment date feed")
        about |= pick(self.config, "task model batch_size")
        whole = {"whole step": self.step, "whole step, not profiled": self.unprofiled}
        readings = self.parts | whole
        return [row(name, seconds, **about) for name, seconds in readings.items()]

    def typical(self, part: str) -> float:
        """Seconds of a part, or of the whole "step", in a typical step.

        The mean over the middle half of the steps, sorted by total time. The parts of
        these steps add up, but their medians would not.
        """
        order = sorted(range(len(self.step)), key=self.step.__getitem__)
        quarter = len(order) // 4
        middle = order[quarter : len(order) - quarter]
        seconds = self.step if part == "step" else self.parts[part]
        return fmean(seconds[index] for index in middle)

    @property
    def overlaps(self) -> bool:
        """Whether the device works through a queue while the host goes on."""
        return any(span.lane == DEVICE for span in self.timeline)

    @property
    def spans(self) -> tuple[Span, ...]:
        """The timeline if host and device overlap, else the parts of a typical step.

        The chart and the sentences on it both use these spans.
        """
        if self.overlaps:
            return self.timeline
        ends = list(accumulate(map(self.typical, PARTS), initial=0.0))
        return tuple(
            Span(HOST, part, *ends[place : place + 2])
            for place, part in enumerate(PARTS)
        )

    def stopwatch(self, lane: str) -> float:
        """The seconds on a stopwatch that waits for the host and for this lane."""
        return max(span.end for span in self.spans if span.lane in (HOST, lane))

    @property
    def seconds(self) -> float:
        """Seconds of the whole step, until host and device have finished."""
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
        """The largest part's share of the step."""
        return (self._longest.end - self._longest.start) / self.seconds
