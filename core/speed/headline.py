"""What a whole climb says: its headline, measured directly, and the words for it.

The gains of the rungs are measured at different moments, and their product is no
measurement: a neighbour that was busy in the middle of one pair of epochs is in it. So
the climb ends with the textbook loop, the best rung and the machine's limit in turn.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from core.measure.environment import Environment
from core.measure.rows import Row, pick, row
from core.measure.speedup import FEWEST_REPEATS, paired
from core.measure.units import precise, times
from core.speed import ladder
from core.speed.ladder import BY_NAME, RUNGS, SAME, Climb, Gain, Result
from core.speed.results import Roofline

TEXTBOOK = RUNGS[0].name


@dataclass(frozen=True)
class DirectProgress:
    """How far the direct comparison has come."""

    pair: int  # of epochs, from 1
    pairs: int
    step: int  # of the epoch


@dataclass(frozen=True)
class Direct:
    """The textbook loop, the best rung and the limit, A B C A B C, after the climb."""

    rung: str  # the best
    seconds: tuple[float, ...] = ()  # of each of its epochs; none where it failed
    # Of an epoch before each; none where the textbook is the best, or has failed.
    textbook_seconds: tuple[float, ...] = ()
    limits: tuple[Roofline, ...] = ()  # one after each of its epochs
    message: str = ""  # why it failed


@dataclass(frozen=True)
class Climbed:
    """A ladder, climbed to its end."""

    climb: Climb
    limit: Roofline
    results: tuple[Result, ...]
    direct: Direct | None  # None where no rung could be measured
    environment: Environment
    date: str

    def __post_init__(self) -> None:
        known = ladder.measured(self.results)
        if self.direct is not None and self.direct.rung not in known:
            raise ValueError("the best rung was not measured")  # a damaged record

    @property
    def best(self) -> Result | None:
        """The best rung, with its epochs of the direct comparison."""
        if self.direct is None or not self.direct.seconds:
            return None
        return replace(
            ladder.measured(self.results)[self.direct.rung],
            base=TEXTBOOK if self.direct.textbook_seconds else "",
            seconds=self.direct.seconds,
            base_seconds=self.direct.textbook_seconds,
        )

    @property
    def speedup(self) -> Gain | None:
        """The headline: the best rung over the textbook loop, their epochs in turn."""
        first = ladder.measured(self.results).get(TEXTBOOK)
        return ladder.gain(self.best, first) if self.best else None

    @property
    def limits(self) -> tuple[Roofline, ...]:
        """All readings of the limit, from before the climb and from its end."""
        return (self.limit, *(self.direct.limits if self.direct else ()))

    def rows(self) -> list[Row]:
        """A row a rung that was measured; the last is the direct comparison."""
        known = ladder.measured(self.results)
        found = [("epoch", each, self.limit) for each in known.values()]
        if self.direct and self.best:
            found.append(("epoch, directly compared", self.best, self.direct.limits[0]))
        return [
            row(
                what,
                each.seconds,
                **pick(each, "rung compared_with=base kept"),
                **pick(self, "environment date task=climb.task model=climb.model"),
                samples_per_second=each.samples_per_second,
                speedup=over and over.median,
                speedup_least=over and over.interval[0],
                speedup_most=over and over.interval[1],
                **pick(each, "start_seconds test_accuracy=accuracy peak_bytes"),
                limit_seconds=limit.seconds(each.samples, each.steps),
            )
            for what, each, limit in found
            for over in [ladder.gain(each, known.get(each.base))]
        ]


def pairs(wanted: Climb) -> int:
    """Of epochs in the direct comparison: so many that a winner can be named."""
    return max(wanted.epochs, FEWEST_REPEATS)


def multiplied(result: Result, results: Sequence[Result]) -> float:
    """All gains on the way up to a rung, multiplied.

    Good enough to tell which rung is best, and no figure to be quoted.
    """
    known = ladder.measured(results)
    found = ladder.gain(result, known.get(result.base))
    return found.median * multiplied(known[result.base], results) if found else 1.0


def best(results: Sequence[Result]) -> Result | None:
    """The fastest rung of those that were kept; None where there is none."""
    kept = (each for each in results if each.kept)
    return max(kept, key=lambda each: multiplied(each, results), default=None)


# In words


def verdict(done: Climbed) -> str:
    """Which rung is best, how much faster than the textbook, how far from the limit."""
    direct, found = done.direct, done.best
    if direct is None:
        return "No rung could be measured here; each says why."
    title = BY_NAME[direct.rung].title
    if found is None:
        return (
            f"**Best rung: {title}.** There is no headline: comparing it directly "
            f"with the textbook loop failed. {direct.message}"
        )
    text = f"**Best rung: {title}. An epoch takes {precise(found.epoch_seconds)}"
    paragraphs = (f"{text}{_over_textbook(done)}.", doubt(done), to_the_limit(done))
    return "\n\n".join(filter(None, paragraphs))


def _over_textbook(done: Climbed) -> str:
    """The headline, with the end of what is bold."""
    direct, found = done.direct, done.speedup
    if direct is None or found is None:
        return "**"
    least, most = map(times, found.interval)
    pairs = f"over {found.n} pairs of epochs, in turn"
    if found.winner is None:
        return (
            f", too close to the textbook loop to call**: {least} to {most} times as "
            f"fast {pairs}"
        )
    if not found.steady:
        return (
            f", {least} to {most} times as fast as the textbook loop** {pairs}. They "
            "differ too much for a single figure, so something else was probably "
            "running: climb again when the machine is quiet"
        )
    return (
        f" instead of {precise(median(direct.textbook_seconds))}: "
        f"{times(found.median)} times as fast as the textbook loop** "
        f"({least} to {most} {pairs})"
    )


def doubt(done: Climbed) -> str:
    """Why the rungs say otherwise, in a sentence; empty where they agree."""
    direct, found = done.direct, done.speedup
    if direct is None or found is None or not found.steady:
        return ""
    rung = ladder.measured(done.results)[direct.rung]
    product = multiplied(rung, done.results)
    if abs(product / found.median - 1) <= SAME:
        return ""
    return (
        f"Multiplied, the gains of the rungs would make that {times(product)} "
        "times. They were measured one after the other, and something else was busy "
        f"in between: trust the {times(found.median)}, which was measured directly."
    )


def to_the_limit(done: Climbed) -> str:
    """How much of an epoch is the machine's limit, and which limit that is."""
    direct, found = done.direct, done.best
    if direct is None or found is None:
        return ""
    places = [each.rung for each in done.results]
    climbed = done.results[: places.index(direct.rung) + 1]
    half = ladder.kept(climbed).half and "bfloat16" in done.limit.flops_per_second
    dtype = "bfloat16" if half else "float32"
    images, steps = found.samples, found.steps
    limits = [each.seconds(images, steps, dtype) for each in direct.limits]
    arithmetic = direct.limits[0].arithmetic_seconds(images, dtype)
    what = "arithmetic" if limits[0] == arithmetic else "moving bytes"
    over = paired(found.seconds, limits)
    if not over.steady:
        return (
            "How far that is from this machine's limit can't be told: its speed "
            "changed too much between the measurements."
        )
    return (
        f"At this machine's measured limit for {dtype}, which is {what}, it would take "
        f"{precise(median(limits))}: the rung takes {times(over.median)} times that."
    )
