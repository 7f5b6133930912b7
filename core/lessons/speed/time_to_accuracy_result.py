"""How soon a CNN is accurate with each change: plain data, without torch."""

from dataclasses import dataclass

from core.measure.environment import Environment
from core.measure.rows import Row, pick, row
from core.registry import stored

TARGET = 0.925  # the accuracy that small CNNs are known for on Fashion-MNIST


@stored("accuracy_test")
@dataclass(frozen=True)
class Tested:
    way: str  # the change that was added, by its name in words.toml
    epoch: int
    seconds: float  # training so far plus this test, without earlier tests
    accuracy: float  # share of the test images that the model gets right


@stored("time_to_accuracy")
@dataclass(frozen=True)
class TimeToAccuracy:
    tests: tuple[Tested, ...]
    task: str
    environment: Environment
    date: str
    seed: int = 0

    @property
    def ways(self) -> list[str]:
        return list(dict.fromkeys(test.way for test in self.tests))

    def figures(self, way: str) -> tuple[float, float | None, float]:
        """Seconds per epoch, seconds until TARGET or None, and the best accuracy."""
        tests = [test for test in self.tests if test.way == way]
        there = (test.seconds for test in tests if test.accuracy >= TARGET)
        best = max(test.accuracy for test in tests)
        return tests[-1].seconds / tests[-1].epoch, next(there, None), best

    def rows(self) -> list[Row]:
        about = pick(self, "environment date task seed")
        return [
            row("training", (t.seconds,), **pick(t, "way epoch accuracy"), **about)
            for t in self.tests
        ]
