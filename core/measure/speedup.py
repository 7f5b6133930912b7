"""Which of two candidates is faster, how many times as fast, and a sentence about it.

The ratio compares medians, which a chart's bars show. If the candidates took turns, the
ratios of the pairs of readings tell how sure this ratio is. Otherwise, the spread of
each candidate's readings does.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import comb, floor, inf, log10
from statistics import median, quantiles
from typing import Any

from core.measure.rounding import times
from to_device.words import capitalized

FEWEST_REPEATS = 3  # with fewer, chance alone names a winner every second time
STEADY = 2.0  # ratios further apart than this factor have no typical value
USELESS = 3.0  # a range of ratios wider than this factor is too wide to be of use
BUSY = (
    "The repeats differ too much, probably because the machine was busy with something "
    "else. Measure again when nothing else is running."
)
CLOSE = 1.1  # ratios up to this are too close to call
MOMENTS = 1.25  # at another moment, the same work may take this many times as long
CERTAIN = 0.9  # an interval of many pairs contains the true ratio at least this often


@dataclass(frozen=True)
class Speedup:
    """How many times as fast the second candidate is as the first."""

    ratio: float  # median seconds of the first over those of the second
    interval: tuple[float, float]  # where the true ratio may be
    n: int = 0  # pairs of repeats; 0 if the two were timed at different moments

    @property
    def steady(self) -> bool:
        """Whether the readings agree well enough for a single figure."""
        return agree(self.interval)

    @property
    def note(self) -> str:
        """Why the readings give no narrower range, and what to do; "" if they do."""
        return "" if agree(self.interval, USELESS) else BUSY

    @property
    def is_sure(self) -> bool:
        """Whether a single figure can say how much faster one of the two is."""
        return self.steady and self.winner is not None

    @property
    def confidence(self) -> float:  # compare/words.toml names this property
        """How often the interval contains the true ratio, by the sign test."""
        return confidence(self.n, _left_out(self.n))

    @property
    def winner(self) -> int | None:
        """0 if the first is faster, 1 if the second is; None if nobody can tell."""
        low, high = self.interval
        if 0 < self.n < FEWEST_REPEATS or low <= 1 <= high:
            return None
        return 1 if low > 1 else 0

    @property
    def of_winner(self) -> "Speedup":
        """How many times as fast the winner is; without a winner, the second."""
        if self.winner != 0:
            return self
        low, high = self.interval
        return Speedup(1 / self.ratio, (1 / high, 1 / low), self.n)

    @property
    def texts(self) -> tuple[str, ...]:
        """The ratio and its interval's ends, with equally many decimals."""
        values = self.ratio, *self.interval
        return tuple(times(value, min(values)) for value in values)

    @property
    def by(self) -> str:
        """A figure, or what is certain if the readings disagree on the figure.

        That is a range or, if the range is too wide to be of use, only its end that is
        nearer to 1: "at least 10". Then `note` says why.
        """
        _, low, high = self.texts
        if self.note and self.winner == 1:
            return f"at least {times(_toward_zero(self.interval[0]))}"
        if self.note and self.winner == 0:
            return f"at most {times(self.interval[1])}"
        return times(self.ratio) if self.is_sure or low == high else f"{low} to {high}"

    @property
    def figure(self) -> str:
        """Text such as "2.3×", "2.1 to 2.6×", or "at least 10×"."""
        return f"{self.by}×"

    @property
    def told(self) -> tuple[float, float]:
        """The interval as `by` tells it: "at least 10" has no upper end."""
        low, high = self.interval
        if self.note and self.winner == 1:
            return low, inf
        return (0.0, high) if self.note and self.winner == 0 else (low, high)

    def answers(self, first: Any, same: Any, second: Any) -> tuple:
        """Those of three guesses that the measurement allows: one, if it is certain.

        `first` and `second` guess that this candidate is faster, and `same` guesses
        that both are equally fast. A winner is a winner, but one that is sure to be
        ahead by less than CLOSE allows `same`, too.
        """
        fitting = spanned((first, same, second), (1 / CLOSE, CLOSE), *self.interval)
        if self.winner is None:
            return fitting
        faster = (first, second)[self.winner]
        return (faster, same) if fitting == (same,) else (faster,)

    def sentence(self, first: str, second: str, pairs: str = "pairs of repeats") -> str:
        """Who is faster and by how much: first what is certain, then what isn't."""
        speedup = self.of_winner
        base, other = (second, first) if self.winner == 0 else (first, second)
        ratio, low, high = speedup.texts
        basis = "measured one after the other"
        if self.n:
            only = "only " if self.n < FEWEST_REPEATS else ""
            basis = f"over {only}{self.n} {pairs}"
        span = capitalized(f"{other} ran {low} to {high} times as fast as {base}")
        if self.winner is None:
            if all(agree((end, 1), CLOSE) for end in self.interval):
                return f"**Too close to call.** {span}, {basis}."
            text = f"**{span}**, {basis}, so either may be the faster one."
            return f"{text} {self.note}".rstrip()
        if self.note:
            text = f"{other} ran {speedup.by} times as fast as {base}"
            return f"**{capitalized(text)}**, {basis}. {self.note}"
        if not self.steady:
            return (
                f"**{span}**, {basis}. The ratios vary too much to be summed up in a "
                "single number. Another program was probably running at the same time."
            )
        text = f"{other} ran {ratio} times as fast as {base}"
        return f"**{capitalized(text)}** ({low} to {high} {basis})."


def agree(values: Sequence[float], factor: float = STEADY) -> bool:
    """Whether positive values differ by at most the factor."""
    return max(values) <= factor * min(values)


def spanned(
    options: Sequence[Any], bounds: Sequence[float], low: float, high: float
) -> tuple:
    """The options that the range from `low` to `high` touches.

    `bounds` lie between neighboring options; a bound is part of the option above it.
    """
    first, last = (sum(end >= bound for bound in bounds) for end in (low, high))
    return tuple(options[first : last + 1])


def paired(first: Sequence[float], second: Sequence[float]) -> Speedup:
    """The speedup from equally many repeats of both, which took turns.

    The interval spans the pairs' ratios; if there are many, without the outermost ones.
    """
    ratios = sorted(a / b for a, b in zip(first, second, strict=True))
    ratio, beyond = median(first) / median(second), _left_out(len(ratios))
    ends = ratio, ratios[beyond], ratios[-1 - beyond]
    return Speedup(ratio, (min(ends), max(ends)), len(ratios))


def speedup(first: Sequence[float], second: Sequence[float]) -> Speedup | None:
    """`paired`, without readings that have no partner; None without pairs."""
    n = min(len(first), len(second))
    return paired(first[:n], second[:n]) if n else None


def unpaired(
    first: Sequence[float], second: Sequence[float], ratio: float | None = None
) -> Speedup:
    """The speedup from readings at different moments.

    `ratio` is the ratio of the whole runs' seconds; by default, that of the medians.
    The interval reaches from `ratio` divided by a factor to `ratio` times that
    factor: the larger `unevenness` of the two, but at least MOMENTS.
    """
    varied = max(MOMENTS, unevenness(first), unevenness(second))
    ratio = ratio or median(first) / median(second)
    return Speedup(ratio, (ratio / varied, ratio * varied))


def unevenness(seconds: Sequence[float]) -> float:
    """The third quartile of the times, divided by the first quartile."""
    if len(seconds) < 2:
        return STEADY  # one reading tells nothing about the spread
    low, _, high = quantiles(seconds, method="inclusive")
    return high / low


def _toward_zero(value: float) -> float:
    """The value, rounded down to two or, below 2, three digits, as `times` has them."""
    step = 10.0 ** (floor(log10(value)) - (2 if value < 2 else 1))
    return floor(value / step) * step


@cache
def _left_out(n: int) -> int:
    """How many of n sorted ratios can be left out at each end.

    The other ratios still span the true median, with the confidence CERTAIN.
    """
    places = range(1, (n + 1) // 2)
    return max((k for k in places if confidence(n, k) >= CERTAIN), default=0)


def confidence(n: int, left_out: int) -> float:
    """The probability that the true median is between the measured ratios.

    Of the n ratios, the `left_out` smallest and largest don't count. This is the sign
    test.
    """
    return 1 - 2 * sum(comb(n, k) for k in range(left_out + 1)) / 2**n
