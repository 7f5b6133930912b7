"""How many times as fast: a ratio with its spread, and how people say it."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

FEWEST_REPEATS = 3  # with fewer, chance alone names a winner every second time
STEADY = 2.0  # ratios further apart than this factor have no typical value


@dataclass(frozen=True)
class Speedup:
    """How many times as fast the second candidate is as the first."""

    ratios: tuple[float, ...]  # seconds of the first over the second, for each pair

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
    def steady(self) -> bool:
        """The ratios agree so well that one figure may stand for them."""
        return agree(self.ratios)

    @property
    def is_sure(self) -> bool:
        """One figure may say by how much one of the two is faster."""
        return self.steady and self.winner is not None

    @property
    def confidence(self) -> float:
        """How often the interval holds the true median, by the sign test.

        It misses only if all n ratios fall on one side: 1 - 2 (1/2)^n.
        """
        return 1 - 2 * 0.5**self.n

    @property
    def winner(self) -> int | None:
        """0 or 1; None if it is too close to call."""
        low, high = self.interval
        if self.n < FEWEST_REPEATS or low <= 1 <= high:
            return None
        return 1 if low > 1 else 0


def agree(values: Sequence[float]) -> bool:
    """Positive values differ by at most the factor STEADY."""
    return max(values) <= STEADY * min(values)


def paired(first: Sequence[float], second: Sequence[float]) -> Speedup:
    """From the seconds of as many repeats of both, which were timed in turn."""
    return Speedup(tuple(a / b for a, b in zip(first, second, strict=True)))


def speedup(first: Sequence[float], second: Sequence[float]) -> Speedup | None:
    """Like `paired`, for as many pairs as there are; None without any."""
    n = min(len(first), len(second))
    return paired(first[:n], second[:n]) if n else None


def rounded(value: float, digits: int = 2) -> str:
    """A number with so many digits that count: 4.7, 28,400; never 2.8e+04."""
    return f"{float(f'{value:.{digits}g}'):,.10g}"


def times(ratio: float) -> str:
    """How many times: 0.95, 1.04, 2.3, 11, 130.

    Two digits, as more would seldom come out the same again; and the second decimal
    where the first does not yet tell who is faster.
    """
    if 0.095 <= ratio < 1.995:
        return f"{ratio:.2f}"
    return f"{ratio:.1f}" if 1.995 <= ratio < 9.95 else rounded(ratio)


def precise(seconds: float) -> str:
    """A measured time in three digits: 85.2 µs, 3.41 ms, 1.2 s."""
    for unit in ("s", "ms", "µs"):
        if seconds >= 0.9995:
            return f"{seconds:.3g} {unit}"
        seconds *= 1000
    return f"{seconds:.3g} ns"
