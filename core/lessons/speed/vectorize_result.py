"""The times of computing the same distances in several ways: plain data."""

from dataclasses import dataclass
from statistics import median

from core.measure.environment import Environment
from core.measure.rows import Row, pick, row
from core.measure.speedup import Speedup, paired
from core.registry import stored

PYTHON, NUMPY, TORCH = "Python loop", "NumPy", "torch on CPU"


@stored("vectorized")
@dataclass(frozen=True)
class Vectorized:
    way: str
    points: int
    seconds: tuple[float, ...]  # one for each repeat
    difference: float  # the most that a distance differs from the Python loop's
    device: str


@stored("numpy_environment")
@dataclass(frozen=True)
class NumpyEnvironment(Environment):
    numpy: str  # NumPy's version


@stored("vectorization")
@dataclass(frozen=True)
class VectorizeLab:
    found: tuple[Vectorized, ...]
    means: int
    environments: dict[str, Environment | NumpyEnvironment]  # one for each method
    date: str

    @property
    def numpy(self) -> str:
        environment = self.environments[NUMPY]
        assert isinstance(environment, NumpyEnvironment)
        return environment.numpy

    def at(self, points: int) -> dict[str, float]:
        """Median seconds of each method, for this number of points."""
        return {t.way: median(t.seconds) for t in self.found if t.points == points}

    def speedup(self, points: int, way: str, other: str) -> Speedup:
        """The speedup of `way` over `other`."""
        seconds = {t.way: t.seconds for t in self.found if t.points == points}
        return paired(seconds[other], seconds[way])

    def rows(self) -> list[Row]:
        return [
            row(
                "distances",
                timing.seconds,
                self.environments[timing.way],
                **pick(timing, "way points"),
                **pick(self, "means date"),
                greatest_difference=timing.difference,
            )
            for timing in self.found
        ]
