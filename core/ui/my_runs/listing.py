"""Runs in a list: what each is called, which are shown, what several say together.

Plain functions of what the store knows of runs, without Streamlit.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from math import sqrt

from core.config import LABELS, RunConfig
from core.errors import quoted
from core.results import Epoch
from core.store.results import SETTINGS, RunSummary
from core.ui import format

JOIN = " · "
SAME = 1.1  # times as long, at most: such runs took about equally long
LEVELS = (0.99, 0.98, 0.95, 0.9, 0.85, 0.8, 0.7, 0.6, 0.5)  # of test accuracy
GOING_ON = ("queued", "starting", "running")
Z = 1.96  # of a 95% interval


def quality(run: RunSummary) -> float | None:
    """How good a run is, 1 at best: its test accuracy, or R² of the test set."""
    return run.r2 if run.accuracy is None else run.accuracy


def has_figures(run: RunSummary) -> bool:
    """Whether it says how good it is and how long it took."""
    return quality(run) is not None and run.seconds is not None


def figure(run: RunSummary) -> str:
    """How good a run is, in words: 87.60% accuracy, or R² 0.946."""
    if run.accuracy is not None:
        return f"{run.accuracy:.2%} accuracy"
    return "–" if run.r2 is None else f"R² {run.r2:.3f}"


def setting(run: RunSummary, field: str) -> str:
    """One setting in a word or two: "batch 64", "CNN", "on CPU"."""
    if field == "device":
        return f"on {device(run)}"
    return format.setting(run, field)


def device(run: RunSummary) -> str:
    """The kind that was asked for; where that was left open, the one it ran on."""
    asked = run.device or "auto"
    return format.NAMES[asked] if asked != "auto" else run.device_name or "Auto"


def differing(runs: Sequence[RunSummary]) -> list[str]:
    """The settings in which some runs differ."""

    def values(field: str) -> set[object]:
        # "auto" and "cpu" are one device on a machine that has no other.
        return {
            each.device_name or each.device
            if field == "device"
            else getattr(each, field)
            for each in runs
        }

    return [field for field in SETTINGS if len(values(field)) > 1]


@cache
def _recipe(task: str, model: str) -> RunConfig:
    try:
        return RunConfig.with_recipe(task=task, model=model)
    except ValueError:  # a task of another version of this app
        return RunConfig()


def changed(run: RunSummary) -> str:
    """The settings in which a run differs from its model's recipe."""
    recipe = _recipe(run.task or "", run.model or "")
    return JOIN.join(
        setting(run, field)
        for field in SETTINGS
        if field not in ("task", "model", "device")
        and getattr(run, field) != getattr(recipe, field)
    )


def label(run: RunSummary) -> str:
    """A run in a list: the name that it was given, and what was changed in it."""
    what = changed(run) or "default settings"
    return f"{run.name}{JOIN}{what}" if run.name else what


def names(runs: Sequence[RunSummary], numbers: Mapping[str, int]) -> list[str]:
    """What each of some runs is called, as in their table; no two are called the same.

    By the name that it was given, else by its number among its owner's runs.
    """
    called = [run.name or f"Run {numbers[run.id]}" for run in runs]
    often = Counter(called)
    return [
        f"{name} (run {numbers[run.id]})" if often[name] > 1 else name
        for name, run in zip(called, runs, strict=True)
    ]


def explained(runs: Sequence[RunSummary], called: Sequence[str]) -> list[str]:
    """Their names with as few settings as tell them apart."""
    fields = _telling(runs)
    return [
        JOIN.join([name, *(setting(run, field) for field in fields)])
        for run, name in zip(runs, called, strict=True)
    ]


def _telling(runs: Sequence[RunSummary]) -> list[str]:
    """The settings to name them by: each next one is that which parts them most."""

    def parts(fields: Sequence[str]) -> int:
        return len({tuple(setting(run, field) for field in fields) for run in runs})

    found: list[str] = []
    while left := [each for each in differing(runs) if each not in found]:
        most = max(left, key=lambda field: parts([*found, field]))
        if parts([*found, most]) == parts(found):
            break
        found.append(most)
    return sorted(found, key=SETTINGS.index)


def search(runs: Sequence[RunSummary], text: str) -> list[RunSummary]:
    """Those whose name, settings, device or status have all the words of the text."""
    words = text.casefold().split()

    def said(run: RunSummary) -> str:
        settings = (setting(run, field) for field in SETTINGS)
        about = (run.name, *settings, run.device_name or "", run.status)
        return " ".join(about).casefold()

    return [run for run in runs if all(word in said(run) for word in words)]


def first_choice(runs: Sequence[RunSummary], most: int) -> list[str]:
    """Which runs to begin with: the newest that has ended well, and those like it."""
    done = [each for each in runs if has_figures(each)] or list(runs)
    return [each.id for each in alike(done, done[0])[:most]]


def beside(runs: Sequence[RunSummary], run: RunSummary, most: int) -> list[str]:
    """A run, and those before it that it can be held against, the newest first."""
    before = alike(runs[runs.index(run) + 1 :], run)
    return [run.id, *(each.id for each in before if has_figures(each))][:most]


def alike(runs: Sequence[RunSummary], like: RunSummary) -> list[RunSummary]:
    """Those of the same task and criterion: other figures can't be compared."""
    same = (like.task, like.criterion)
    return [each for each in runs if (each.task, each.criterion) == same]


def frontier(runs: Sequence[RunSummary]) -> list[str]:
    """The ids of the runs that no other beats in both: seconds and quality."""
    found: list[str] = []
    best = float("-inf")
    for run in sorted(runs, key=lambda run: (run.seconds or 0, -(quality(run) or 0))):
        if (reached := quality(run)) is not None and reached > best:
            best = reached
            found.append(run.id)
    return found


def finding(
    runs: Sequence[RunSummary],
    called: Sequence[str],
    histories: Sequence[Sequence[Epoch]],
    samples: int,
) -> str:
    """What some runs say together, in sentences; empty where none has figures.

    `samples` is how many test images each was evaluated on, 0 where that is unknown.
    """
    found = [
        (run, quoted(name) if run.name else name, history)
        for run, name, history in zip(runs, called, histories, strict=True)
        if has_figures(run)
    ]
    if not found:
        return ""
    if len(found) == 1:
        return f"**{found[0][1]}: {_cost(found[0][0])}.**"
    ranked = sorted(found, key=lambda each: quality(each[0]) or 0, reverse=True)
    (best, name, _), (second, other, _) = ranked[:2]
    fastest, speed = _speed(found)
    if noise := _noise(best, second, samples):
        return (
            f"**{speed} In accuracy, {name} and {other} are too close to call: "
            f"{best.accuracy:.2%} and {second.accuracy:.2%}.** On {samples:,} test "
            f"images, chance alone can make a difference of {noise:.1%}."
        )
    most = "the best" if best.accuracy is None else "the most accurate"
    if fastest is best:
        return f"**{name} is the fastest and {most}: {_cost(best)}.**"
    return f"**{speed} {name} is {most}: {_cost(best)}.**"


def _speed(
    found: Sequence[tuple[RunSummary, str, Sequence[Epoch]]],
) -> tuple[RunSummary | None, str]:
    """Which of several runs is the fastest, if that is sure; and a sentence of it."""
    by_seconds = sorted(found, key=lambda each: each[0].seconds or 0)
    (first, name, history), (second, other, _) = by_seconds[:2]
    took, took_next = first.seconds or 0, second.seconds or 0
    histories = [each for *_, each in found]
    near = close(histories)
    if took_next < near * took:
        return None, (
            f"{name} and {other} took about equally long: {format.duration(took)} and "
            f"{format.duration(took_next)}."
        )
    if mark := level(histories):
        own = seconds_to(history, mark) or 0
        soonest, leader = min(
            (seconds_to(each, mark) or 0, called) for _, called, each in found
        )
        if own > near * soonest:
            return None, (
                f"{name} took the least time, {format.duration(took)}, but {leader} "
                f"was the first to reach {mark:.0%}, after {soonest:.1f} s."
            )
    return first, f"{name} is the fastest: {format.duration(took)}."


def close(histories: Sequence[Sequence[Epoch]]) -> float:
    """How many times as long runs may take that are called about equally fast.

    As many as the epochs of a single run differ by, in their middle half, at least.
    """
    halves = (
        format.middle_half([each.seconds for each in history])
        for history in histories
        if len(history) > 1
    )
    return max([SAME, *(high / low for low, high in halves if low)])


def _cost(run: RunSummary) -> str:
    return f"{figure(run)} in {format.duration(run.seconds or 0)}"


def _noise(best: RunSummary, second: RunSummary, samples: int) -> float:
    """What chance makes of a difference in accuracy, where it explains this one."""
    p, q = best.accuracy, second.accuracy
    if not samples or p is None or q is None:
        return 0.0
    noise = Z * sqrt((p * (1 - p) + q * (1 - q)) / samples)
    return noise if p - q <= noise else 0.0


def level(histories: Sequence[Sequence[Epoch]]) -> float | None:
    """The highest of LEVELS that all of several runs have reached."""
    reached = [
        max((each.test_accuracy or 0 for each in history), default=0)
        for history in histories
    ]
    return next((each for each in LEVELS if reached and min(reached) >= each), None)


def seconds_to(history: Sequence[Epoch], level: float) -> float | None:
    """Seconds of training until an epoch ended at that test accuracy or above."""
    seconds = 0.0
    for epoch in history:
        seconds += epoch.seconds
        if (epoch.test_accuracy or 0) >= level:
            return seconds
    return None


def differences(
    runs: Sequence[RunSummary],
    called: Sequence[str],
    histories: Sequence[Sequence[Epoch]],
) -> list[dict[str, str]]:
    """A row a setting in which they differ, then what came of it; a column a run."""
    rows = [
        (LABELS[field], [_value(run, field) for run in runs])
        for field in differing(runs)
    ]
    if any(run.accuracy is not None for run in runs):
        rows.append(("Test accuracy", [_or_dash(run.accuracy, ".2%") for run in runs]))
    if any(run.r2 is not None for run in runs):
        rows.append(("Test R²", [_or_dash(run.r2, ".3f") for run in runs]))
    if (mark := level(histories)) is not None:
        seconds = [_or_dash(seconds_to(each, mark), ".1f") for each in histories]
        rows.append((f"Seconds to {100 * mark:.0f}%", seconds))
    rows.append(("Total seconds", [_or_dash(run.seconds, ".1f") for run in runs]))
    return [
        {"Setting": title, **dict(zip(called, values, strict=True))}
        for title, values in rows
    ]


def _value(run: RunSummary, field: str) -> str:
    """A setting's value by itself."""
    if field == "device":
        return run.device_name or device(run)
    value = getattr(run, field)
    if isinstance(value, bool):
        return "on" if value else "off"
    return (
        f"{value:g}"
        if isinstance(value, float)
        else format.NAMES.get(value, str(value))
    )


def _or_dash(value: float | None, form: str) -> str:
    return "–" if value is None else f"{value:{form}}"
