"""How many times as fast: the one rule for who is faster, and how people say it.

A ratio is that of the medians, which the bars of a chart show. How sure it is comes
from the pairs of readings where both took turns, and else from how much the readings of
each differ among themselves.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import comb
from statistics import median, quantiles
from typing import Any

from core.words import capitalized

FEWEST_REPEATS = 3  # with fewer, chance alone names a winner every second time
STEADY = 2.0  # ratios further apart than this factor have no typical value
CLOSE = 1.1  # ratios up to this one are no difference to speak of
MOMENTS = 1.25  # the same work at another moment takes up to so many times as long
CERTAIN = 0.9  # how often an interval of many pairs holds the true ratio, at least


@dataclass(frozen=True)
class Speedup:
    """How many times as fast the second contender is as the first."""

    ratio: float  # median seconds of the first over those of the second
    interval: tuple[float, float]  # around it, from where to where it may be
    n: int = 0  # pairs of repeats; 0: they were timed at different moments

    @property
    def steady(self) -> bool:
        """The readings agree so well that one figure may stand for them."""
        return agree(self.interval)

    @property
    def is_sure(self) -> bool:
        """One figure may say by how much one of the two is faster."""
        return self.steady and self.winner is not None

    @property
    def confidence(self) -> float:
        """How often the interval holds the true ratio, by the sign test."""
        return _confidence(self.n, _left_out(self.n))

    @property
    def winner(self) -> int | None:
        """0 or 1; None if that can't be told."""
        low, high = self.interval
        if 0 < self.n < FEWEST_REPEATS or low <= 1 <= high:
            return None
        return 1 if low > 1 else 0

    @property
    def of_winner(self) -> "Speedup":
        """How many times as fast the winner is; the second where none is."""
        if self.winner != 0:
            return self
        low, high = self.interval
        return Speedup(1 / self.ratio, (1 / high, 1 / low), self.n)

    @property
    def by(self) -> str:
        """A figure; a range where the readings disagree on it, or on who is faster."""
        low, high = map(times, self.interval)
        return times(self.ratio) if self.is_sure or low == high else f"{low} to {high}"

    def answers(self, first: Any, same: Any, second: Any) -> tuple:
        """Which of three guesses fit: the first is faster, neither, or the second."""
        fitting = spanned((first, same, second), (1 / CLOSE, CLOSE), *self.interval)
        named = () if self.winner is None else ((first, second)[self.winner],)
        return tuple(dict.fromkeys((*named, *fitting)))

    def sentence(self, first: str, second: str, pairs: str = "pairs of repeats") -> str:
        """Who is faster and how much, or why that can't be told."""
        over = self.of_winner
        one, other = (second, first) if self.winner == 0 else (first, second)
        low, high = map(times, over.interval)
        few = "only " * (self.n < FEWEST_REPEATS)
        among = "in measurements at different times"
        if self.n:
            among = f"over {few}{self.n} {pairs}"
        between = f"{other} ran {low} to {high} times as fast as {one}"
        if self.winner is None and all(agree((end, 1), CLOSE) for end in self.interval):
            return f"**Too close to call.** {capitalized(between)}, {among}."
        if self.winner is None:
            return (
                f"**We can't tell which is faster.** {capitalized(between)}, {among}."
            )
        if not self.steady:
            return (
                f"**{capitalized(between)}**, {among}. The ratios vary too much for a "
                "single figure. Another program was probably running at the same time."
            )
        text = f"{other} ran {times(over.ratio)} times as fast as {one}"
        return f"**{capitalized(text)}** ({low} to {high} {among})."


def agree(values: Sequence[float], factor: float = STEADY) -> bool:
    """Positive values differ by at most the factor."""
    return max(values) <= factor * min(values)


def spanned(
    options: Sequence[Any], bounds: Sequence[float], low: float, high: float
) -> tuple:
    """The options that a range touches; `bounds` part them, and belong to the upper."""
    first, last = (sum(end >= bound for bound in bounds) for end in (low, high))
    return tuple(options[first : last + 1])


def paired(first: Sequence[float], second: Sequence[float]) -> Speedup:
    """From the seconds of as many repeats of both, which were timed in turn.

    The interval spans the ratios of the pairs, and of many leaves out the outermost.
    """
    ratios = sorted(a / b for a, b in zip(first, second, strict=True))
    ratio, beyond = median(first) / median(second), _left_out(len(ratios))
    ends = ratio, ratios[beyond], ratios[-1 - beyond]
    return Speedup(ratio, (min(ends), max(ends)), len(ratios))


def speedup(first: Sequence[float], second: Sequence[float]) -> Speedup | None:
    """Like `paired`, for as many pairs as there are; None without any."""
    n = min(len(first), len(second))
    return paired(first[:n], second[:n]) if n else None


def apart(
    first: Sequence[float], second: Sequence[float], ratio: float | None = None
) -> Speedup:
    """From seconds of different moments, or with a `ratio` of whole runs of them."""
    varied = max(MOMENTS, unevenness(first), unevenness(second))
    ratio = ratio or median(first) / median(second)
    return Speedup(ratio, (ratio / varied, ratio * varied))


def unevenness(seconds: Sequence[float]) -> float:
    """How many times as long the third quarter took as the first."""
    if len(seconds) < 2:
        return STEADY  # nobody knows
    low, _, high = quantiles(seconds, method="inclusive")
    return high / low


@cache
def _left_out(n: int) -> int:
    """How many of the outermost pairs at each end aren't needed to be certain."""
    places = range(1, (n + 1) // 2)
    return max((k for k in places if _confidence(n, k) >= CERTAIN), default=0)


def _confidence(n: int, left_out: int) -> float:
    """The true median is beyond if so few of the ratios fall on one side."""
    return 1 - 2 * sum(comb(n, k) for k in range(left_out + 1)) / 2**n


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
