"""What happened to all people in one round, and what that comes to."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import quantiles


@dataclass
class Turn:
    """One run of one person; times are seconds of one clock."""

    person: int
    pressed: float  # when the button was
    taken: float  # when the page had answered
    waited: float | None = None  # when a page was asked for that still named a place
    looks: list[float] = field(default_factory=list)  # when a page showed its progress
    served: float | None = None  # when the page told how good the model is
    samples_per_second: float = 0.0  # of the last epoch, as the page told it


@dataclass
class Record:
    """Times are seconds that people waited, errors are sentences."""

    page: list[float] = field(default_factory=list)  # from the address to the page
    click: list[float] = field(default_factory=list)  # from the press to the page
    look: list[float] = field(default_factory=list)  # from the timer to the page
    browser_page: list[float] = field(default_factory=list)  # the same, by witnesses
    browser_click: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)

    @property
    def served(self) -> list[Turn]:
        """Those who were told how good their model is."""
        return [turn for turn in self.turns if turn.served is not None]

    @property
    def between_looks(self) -> list[float]:
        """Seconds from one look at a run that goes on to the next."""
        return [b - a for turn in self.turns for a, b in pairwise(turn.looks)]

    @property
    def samples_per_second(self) -> list[float]:
        return [
            each.samples_per_second for each in self.turns if each.samples_per_second
        ]


def overtaken(turns: Iterable[Turn], before: Iterable[Turn] = ()) -> list[str]:
    """Who still waited when somebody was served who came later, in sentences.

    Not where the other one's last turn, `before` this round, was longer ago: a fair
    queue may let them pass.
    """
    last = {turn.person: turn.served or 0.0 for turn in before}
    turns = list(turns)
    return [
        f"{first.person} still waited when {later.person}, who came later, was served"
        for first in turns
        for later in turns
        if first.taken < later.pressed
        and last.get(first.person, 0.0) <= last.get(later.person, 0.0)
        and first.waited is not None
        and later.served is not None
        and first.waited > later.served
    ]


def percentiles(seconds: list[float]) -> dict[str, float] | None:
    """p50, p95 and max; None of nothing."""
    if not seconds:
        return None
    cuts = quantiles(seconds, n=20, method="inclusive") if seconds[1:] else seconds * 19
    return {"p50": cuts[9], "p95": cuts[18], "max": max(seconds), "n": len(seconds)}
