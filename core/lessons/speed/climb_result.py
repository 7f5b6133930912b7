"""The rungs of the ladder, the results of measuring them, and sentences on the results.

A rung is a training loop that makes one change to an earlier rung's loop, its base. A
climb measures all rungs. Its headline is the speedup of the best rung over the textbook
loop, the first rung. The headline is measured at the end of the climb, where epochs of
these two rungs alternate. The product of all rungs' gains would say nothing:
gains are measured at different times, and another program may have been busy
at some of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import takewhile
from statistics import median
from typing import Any

from core.measure.environment import Environment
from core.measure.rounding import precise, times
from core.measure.rows import Row, counted, pick, row
from core.measure.speedup import (
    CLOSE,
    FEWEST_REPEATS,
    MOMENTS,
    Speedup,
    agree,
    paired,
    spanned,
)
from core.registry import stored
from to_device.words import Words

words = Words(__file__)


@dataclass(frozen=True)
class Rung:
    """One small change to the loop of an earlier rung."""

    name: str  # also the name of its function in core.lessons.speed.rungs
    title: str
    change: str  # a text: the change, and why it may help
    # Reasons why the rung can't be measured. A key names backends or models: "CPU XPU".
    obstacles: dict[str, str] = field(default_factory=dict)

    def obstacle(self, backend: str, model: str) -> str:
        """Why the rung can't be measured with this backend or model; "" if it can."""
        reasons = (
            reason
            for names, reason in self.obstacles.items()
            if {backend, model} & set(names.split())
        )
        return next(reasons, "")


RUNGS = tuple(Rung(name, **texts) for name, texts in words.table("rungs").items())
BY_NAME = {rung.name: rung for rung in RUNGS}
TEXTBOOK = RUNGS[0].name
# Timed epochs per rung and images per epoch, few enough for a CPU with two cores.
DEFAULTS = {"ann": (3, 60_000), "cnn": (2, 10_000)}
RANGES = {"epochs": (1, 10), "images": (1_024, 60_000)}
FIRST_STEPS = 5  # a rung's steps before its timed epochs
COUNTED_IMAGES = 1024  # images in the epoch whose waits and copies are counted


@stored("ladder_settings")
@dataclass(frozen=True)
class Climb:
    """The settings of a climb; raises ValueError with a sentence for each bad value."""

    task: str
    model: str
    device: str  # a name that core.devices.resolve accepts
    epochs: int  # timed epochs per rung
    images: int  # per epoch: the first images of the training set

    def __post_init__(self) -> None:
        problems = [
            f"{name.capitalize()} must be from {low:,} to {high:,}, not {value:,}."
            for name, (low, high) in RANGES.items()
            if not low <= (value := getattr(self, name)) <= high
        ]
        if problems:
            raise ValueError(" ".join(problems))

    @property
    def pairs(self) -> int:
        """Pairs of epochs in the direct comparison: enough to see which is faster."""
        return max(self.epochs, FEWEST_REPEATS)


@stored("ladder_progress")
@dataclass(frozen=True)
class ClimbProgress:
    rung: str  # "" in the direct comparison, so as not to give away the best rung
    epoch: int = 0  # from 1; 0 while the rung is being set up
    step: int = 0  # steps made in this epoch


@stored("ladder_counts")
@dataclass(frozen=True)
class Counts:
    """What the simulated accelerator counted in one epoch of a rung."""

    rung: str
    waits: int  # how often the host waited
    copies: int  # number of copies to the device
    bytes: int  # total size of these copies
    operations: int


# What is measured of one rung

# Accuracies closer than this count as equal: the largest difference between ten seeds
# (docs/experiments.md), rounded up to a whole percentage point.
NOISE = 0.04
GUESSES = ("Slower", "About the same", "Up to twice as fast", "More than that")


def answers(gain: Speedup) -> tuple[str, ...]:
    """The GUESSES that agree with a gain's measured interval."""
    return spanned(GUESSES, (1 / CLOSE, CLOSE, 2), *gain.interval)


@stored("rung")
@dataclass(frozen=True)
class Result:
    """The readings of one rung, or why there are none."""

    rung: str
    base: str  # the last kept rung before this rung; "" if no rung was kept
    seconds: tuple[float, ...] = ()  # one per timed epoch; empty if it wasn't measured
    # After each epoch of this rung, an epoch of the base was timed, too.
    base_seconds: tuple[float, ...] = ()
    samples: int = 0  # per epoch
    steps: int = 0  # per epoch
    start_seconds: float = 0.0  # set-up and first step: starts workers, compiles
    peak_bytes: int | None = None  # peak memory in the first steps; None if not counted
    correct: int = 0  # right answers on the test images, after all epochs
    total: int = 0  # test images
    kept: bool = False  # whether later rungs have this change, too
    message: str = ""  # why the rung can't be measured here, or why it failed
    again: tuple[float, ...] = ()  # seconds of the rung's epochs in Climbed.direct

    @property
    def measured(self) -> bool:
        return bool(self.seconds)

    @property
    def newest(self) -> tuple[float, ...]:
        return self.again or self.seconds

    @property
    def epoch_seconds(self) -> float:
        return median(self.newest)

    @property
    def samples_per_second(self) -> float:
        return self.samples / self.epoch_seconds

    @property
    def spread(self) -> tuple[float, float]:
        """Least and most samples/s."""
        return self.samples / max(self.newest), self.samples / min(self.newest)

    @property
    def accuracy(self) -> float:
        return self.correct / self.total


@dataclass(frozen=True)
class Kept:
    """The settings that later rungs take over from kept rungs."""

    num_workers: int = 0
    batch_size: int = 64
    learning_rate: float = 1e-3
    half: bool = False  # whether to use 16-bit autocast
    channels_last: bool = False
    compiled: bool = False

    def with_change(self, rung: str) -> "Kept":
        return replace(self, **CHANGES.get(rung, {}))


CHANGES: dict[str, dict[str, Any]] = {
    "two_workers": {"num_workers": 2},
    "four_workers": {"num_workers": 4},
    "larger_batch": {"batch_size": 256, "learning_rate": 2e-3},
    "half_precision": {"half": True},
    "channels_last": {"channels_last": True},
    "compiled": {"compiled": True},
}
# Rungs whose changes later rungs need, even if the changes don't help.
NEEDED = ("textbook", "decoded_once", "on_the_device", "no_waiting", "fused")


# What follows from several rungs


def measured(results: Sequence[Result]) -> dict[str, Result]:
    return {result.rung: result for result in results if result.measured}


def gain_of(result: Result, results: Sequence[Result]) -> Speedup | None:
    """A rung's speedup over its base, from epochs of both that alternated.

    None if no epochs of a base were timed. Seconds per sample are compared,
    since a rung may leave out the last, smaller batch.
    """
    if not result.base_seconds:
        return None
    base = measured(results)[result.base]
    before = [seconds / base.samples for seconds in result.base_seconds]
    return paired(before, [seconds / result.samples for seconds in result.seconds])


def drifted(result: Result, results: Sequence[Result]) -> bool:
    """Whether the machine's speed has changed since the base was measured."""
    if not result.base_seconds:
        return False
    before = measured(results)[result.base].seconds
    return not agree((median(before), median(result.base_seconds)), MOMENTS)


def beside(result: Result, base: Result) -> float | None:
    """The samples/s of the rung that this one builds on, measured in turn with it.

    Beside its own bar, this is what the speedup compares. None if it wasn't measured.
    """
    if not result.base_seconds:
        return None
    return base.samples / median(result.base_seconds)


def kept_changes(results: Sequence[Result]) -> Kept:
    """The settings with the changes of all rungs that were kept."""
    return reduce(Kept.with_change, (r.rung for r in results if r.kept), Kept())


def precision(rung: str, results: Sequence[Result]) -> str:
    """The rung's dtype: "bfloat16" with 16-bit autocast, otherwise "float32"."""
    earlier = tuple(takewhile(lambda result: result.rung != rung, results))
    return "bfloat16" if kept_changes(earlier).with_change(rung).half else "float32"


def base(results: Sequence[Result]) -> str:
    """The last kept rung, which is the next rung's base; "" if no rung was kept."""
    return next((r.rung for r in reversed(results) if r.kept), "")


def is_kept(result: Result, before: Sequence[Result]) -> bool:
    """Whether later rungs include the rung's change: it helps, or later rungs need it.

    A change helps if the rung is faster than its base, and about as accurate as the
    first rung. A rung without a base is kept, too.
    """
    gain = gain_of(result, before)
    if result.rung in NEEDED or gain is None:
        return True
    first = next(iter(measured(before).values()))
    return gain.ratio > CLOSE and result.accuracy > first.accuracy - NOISE


def multiplied(result: Result, results: Sequence[Result]) -> float:
    """The product of all gains up to a rung: it ranks rungs, but was not measured."""
    if (gain := gain_of(result, results)) is None:
        return 1.0
    return gain.ratio * multiplied(measured(results)[result.base], results)


def best(results: Sequence[Result]) -> Result | None:
    candidates = (result for result in results if result.kept)
    return max(candidates, key=lambda r: multiplied(r, results), default=None)


def seconds_left(results: Sequence[Result], climb: Climb, backend: str) -> float | None:
    """About how many seconds the rest of a climb takes; None before any kept rung.

    Every further rung is taken to be as fast as the last kept one, with which it
    alternates. Setting up is left out: only compiling takes long, and no rung tells
    for how long another one compiles.
    """
    known = measured(results)
    if (last := known.get(base(results))) is None:
        return None
    first = next(iter(known.values()))
    todo = [r for r in RUNGS[len(results) :] if not r.obstacle(backend, climb.model)]
    epochs = 2 * climb.epochs * len(todo) + climb.pairs
    return epochs * median(last.seconds) + climb.pairs * median(first.seconds)


@stored("roofline")
@dataclass(frozen=True)
class Roofline:
    """The work of training a model, and this machine's rates for such work.

    The work and the rates say how fast the machine could train at best. Of several
    readings of a rate, the fastest counts: other programs may slow the rest.
    """

    flops_per_image: float  # forward and backward pass
    bytes_per_image: float  # pixels and label, read once
    bytes_per_step: float  # weights, gradients and Adam's moments, read and written
    flops_per_second: dict[str, tuple[float, ...]]  # readings for each dtype
    bytes_per_second: tuple[float, ...]  # readings of a large copy, reads plus writes
    # Readings of a copy as large as weights, gradients and moments together.
    state_bytes_per_second: tuple[float, ...]

    def arithmetic_seconds(self, images: int, dtype: str = "float32") -> float:
        return images * self.flops_per_image / max(self.flops_per_second[dtype])

    def memory_seconds(self, images: int, steps: int) -> float:
        pixels = images * self.bytes_per_image / max(self.bytes_per_second)
        state = steps * self.bytes_per_step / max(self.state_bytes_per_second)
        return pixels + state

    def flops_per_byte(self, images: int, steps: int) -> float:
        """Operations per byte of an epoch: what it computes on the bytes it moves."""
        moved = images * self.bytes_per_image + steps * self.bytes_per_step
        return images * self.flops_per_image / moved

    def roof(self, flops_per_byte: float, dtype: str = "float32") -> float:
        """The most operations per second that memory and arithmetic allow."""
        memory = flops_per_byte * max(self.state_bytes_per_second)
        return min(memory, max(self.flops_per_second[dtype]))

    def seconds(self, images: int, steps: int, dtype: str = "float32") -> float:
        """The longer of arithmetic and memory time, as in the roofline model.

        The model assumes that arithmetic and memory traffic overlap fully: Williams,
        Waterman and Patterson, "Roofline", CACM 52 (4), 2009.
        """
        arithmetic = self.arithmetic_seconds(images, dtype)
        return max(arithmetic, self.memory_seconds(images, steps))


# What the whole climb shows


@dataclass(frozen=True)
class Direct:
    """The direct comparison after the climb: textbook loop, best rung and limit."""

    rung: str  # the best rung
    seconds: tuple[float, ...] = ()  # one per epoch of the rung; empty if it failed
    # One per epoch of the textbook loop; each precedes an epoch of the best rung. Empty
    # if the textbook loop is the best rung or was not measured.
    textbook_seconds: tuple[float, ...] = ()
    limits: tuple[Roofline, ...] = ()  # one after each of the best rung's epochs
    message: str = ""  # why the comparison failed


@stored("ladder")
@dataclass(frozen=True)
class Climbed:
    climb: Climb
    limit: Roofline
    results: tuple[Result, ...]
    direct: Direct | None  # None if no rung could be measured
    environment: Environment
    date: str
    counts: tuple[Counts, ...] = ()  # empty without the simulated accelerator

    @property
    def best(self) -> Result | None:
        """The best rung's Result, with the seconds of the direct comparison."""
        if self.direct is None or not self.direct.seconds:
            return None
        return replace(
            measured(self.results)[self.direct.rung],
            base=TEXTBOOK if self.direct.textbook_seconds else "",
            seconds=self.direct.seconds,
            base_seconds=self.direct.textbook_seconds,
        )

    @property
    def newest_results(self) -> tuple[Result, ...]:
        """The results; `again` is set for the rungs of the direct comparison."""
        if self.direct is None:
            return self.results
        again = {TEXTBOOK: self.direct.textbook_seconds}
        again[self.direct.rung] = self.direct.seconds
        return tuple(replace(r, again=again.get(r.rung, ())) for r in self.results)

    @property
    def speedup(self) -> Speedup | None:
        """The headline: the directly measured speedup over the textbook loop."""
        return gain_of(self.best, self.results) if self.best else None

    @property
    def limits(self) -> tuple[Roofline, ...]:
        """The machine's limit, measured before the climb and in `direct`."""
        return (self.limit, *(self.direct.limits if self.direct else ()))

    def rows(self) -> list[Row]:
        """Rows for measured rungs, the direct comparison, and the rungs' Counts."""
        about = pick(self, "environment date task=climb.task model=climb.model")
        rungs = measured(self.results).values()
        epochs = [("epoch", result, self.limit) for result in rungs]
        if self.direct and self.best:
            limit = self.direct.limits[0]
            epochs.append(("epoch, directly compared", self.best, limit))
        return [
            row(
                name,
                result.seconds,
                **pick(result, "rung compared_with=base kept"),
                **about,
                samples_per_second=result.samples_per_second,
                speedup=gain and gain.ratio,
                speedup_least=gain and gain.interval[0],
                speedup_most=gain and gain.interval[1],
                **pick(result, "start_seconds test_accuracy=accuracy peak_bytes"),
                limit_seconds=limit.seconds(result.samples, result.steps),
            )
            for name, result, limit in epochs
            for gain in [gain_of(result, self.results)]
        ] + [
            counted(
                f"epoch of {COUNTED_IMAGES} images",
                **about,
                **pick(counts, "rung waits copies bytes operations"),
            )
            for counts in self.counts
        ]


def verdict(climbed: Climbed) -> str:
    """Sentences on the best rung: time, speedup, and the machine's limit."""
    direct, rung = climbed.direct, climbed.best
    if direct is None:
        return "No rung could be measured here. Choose a rung to see why."
    title = BY_NAME[direct.rung].title
    if rung is None:
        return (
            f"**Best rung: {title}.** There is no headline figure, "
            "because the direct comparison with the textbook loop "
            f"failed. {direct.message}"
        )
    seconds = precise(rung.epoch_seconds)
    images = f"An epoch of {rung.samples:,} images"
    text = f"**Best rung: {title}.** {images} takes {seconds}."
    if (gain := climbed.speedup) is not None:
        seconds = precise(median(rung.base_seconds))
        over = gain.sentence("the textbook loop", "the best rung", "pairs of epochs")
        text += f" An epoch of the textbook loop takes {seconds}. {over}"
    limit = to_the_limit(climbed, direct, rung)
    gained = largest_gain(climbed.results)
    return "\n\n".join(filter(None, (text, gained, doubt(climbed), limit)))


def largest_gain(results: Sequence[Result]) -> str:
    """A sentence on the change that made the loop faster by the largest factor.

    Each rung is compared with its own base, which was measured in turn with it. "" if
    no rung is surely faster than its base.
    """
    gains = {
        name: gain
        for name, result in measured(results).items()
        if (gain := gain_of(result, results)) and gain.is_sure and gain.winner == 1
    }
    if not gains:
        return ""
    name = max(gains, key=lambda name: gains[name].ratio)
    return (
        f"The change that gains most by itself is **{BY_NAME[name].title}**: "
        f"{times(gains[name].ratio)} times the speed of the loop before it."
    )


def doubt(climbed: Climbed) -> str:
    """A sentence if the product of the gains isn't near the direct speedup; else ""."""
    direct, gain = climbed.direct, climbed.speedup
    if direct is None or gain is None or not gain.steady:
        return ""
    rung = measured(climbed.results)[direct.rung]
    product = multiplied(rung, climbed.results)
    if agree((product, gain.ratio), CLOSE):
        return ""
    return (
        "If you multiply the gains of all the rungs, you get "
        f"{times(product)} times the speed. But the machine's speed "
        "changed between the rungs. Trust the factor of "
        f"{times(gain.ratio)}, which was measured directly."
    )


def to_the_limit(climbed: Climbed, direct: Direct, rung: Result) -> str:
    """A sentence on the limit, which is the least time an epoch could take.

    The sentence also says how many times as long the best rung's epoch takes.
    """
    dtype = precision(direct.rung, climbed.results)
    if dtype not in climbed.limit.flops_per_second:
        dtype = "float32"
    images, steps = rung.samples, rung.steps
    limits = [limit.seconds(images, steps, dtype) for limit in direct.limits]
    slowdown = paired(rung.seconds, limits)
    if not slowdown.steady:
        ends = precise(min(limits)), precise(max(limits))
        return (
            f"At this machine's limit, an epoch would take {ends[0]} to "
            f"{ends[1]}: the machine's speed changed between the two "
            "measurements."
        )
    kind = "move the bytes"
    if limits[0] == direct.limits[0].arithmetic_seconds(images, dtype):
        kind = f"do the arithmetic in {dtype}"
    limit = precise(median(limits))
    return (
        f"If the machine only had to {kind}, an epoch would take "
        f"{limit}. The best rung takes {slowdown.by} times as long."
    )
