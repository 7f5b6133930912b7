"""Seconds of a multiplication, at once and in a chain."""

from dataclasses import dataclass
from statistics import median

from core.measure.environment import Environment

AT_ONCE, IN_TURN = "At once", "In a chain"  # independent, or each needs the last
SHORT_VECTORS = "One core, short vectors"  # four numbers long


@dataclass(frozen=True)
class Multiplied:
    """Multiplications of two numbers, by one way."""

    work: str  # AT_ONCE or IN_TURN
    way: str
    seconds: tuple[float, ...]  # for one multiplication; one for each repeat
    device: str


@dataclass(frozen=True)
class Multiplications:
    """Both kinds of work, by every way that is here."""

    found: tuple[Multiplied, ...]
    cores: int
    environment: Environment
    date: str

    def readings(self, work: str) -> dict[str, tuple[float, ...]]:
        """Seconds of one multiplication, by each way."""
        return {e.way: e.seconds for e in self.found if e.work == work}

    def at(self, work: str) -> dict[str, float]:
        """Their medians."""
        return {way: median(seconds) for way, seconds in self.readings(work).items()}
