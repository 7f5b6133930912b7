"""The time of multiplications, all at once or in a chain: plain data, without torch."""

from dataclasses import dataclass
from statistics import median

from core.measure.environment import Environment
from core.measure.speedup import Speedup, paired, unpaired
from core.registry import stored

# What is timed: independent multiplications, or a chain of multiplications, each of
# which needs the result of the one before.
AT_ONCE, IN_TURN = "At once", "In a chain"
SHORT_VECTORS = "One core, short vectors"  # a Multiplied.way: vectors of four numbers


@stored("multiplied")
@dataclass(frozen=True)
class Multiplied:
    work: str  # AT_ONCE or IN_TURN
    way: str  # how the multiplications run, such as "One core" or "Python loop"
    seconds: tuple[float, ...]  # time of one multiplication, one for each repeat
    device: str


@stored("multiplication")
@dataclass(frozen=True)
class Multiplications:
    found: tuple[Multiplied, ...]
    cores: int
    environment: Environment
    date: str
    took_turns: bool = (
        False  # False in older results: one way after the other was timed
    )

    def speedup(self, first: str, second: str) -> Speedup:
        """How many times as fast the second way multiplies AT_ONCE as the first."""
        readings = self.readings(AT_ONCE)
        in_turns = self.took_turns and SHORT_VECTORS not in (first, second)
        return (paired if in_turns else unpaired)(readings[first], readings[second])

    def readings(self, work: str) -> dict[str, tuple[float, ...]]:
        """Seconds of one multiplication in each repeat, keyed by the way's name."""
        return {
            result.way: result.seconds for result in self.found if result.work == work
        }

    def at(self, work: str) -> dict[str, float]:
        """Median seconds of one multiplication, keyed by the way's name."""
        return {way: median(seconds) for way, seconds in self.readings(work).items()}
