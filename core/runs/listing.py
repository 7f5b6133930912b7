"""Runs in a list: their names and labels, search, and which of them to compare."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache

from core.config import FAST, RunConfig
from core.store.tables import SETTINGS, RunSummary
from core.ui import format

GOING_ON = ("queued", "starting", "running")


def quality(run: RunSummary) -> float | None:
    """The test accuracy, or for regression R² on the test set; 1 is the best."""
    return run.r2 if run.accuracy is None else run.accuracy


def has_figures(run: RunSummary) -> bool:
    return quality(run) is not None and run.seconds is not None


def figure(run: RunSummary) -> str:
    """Text such as "87.60% accuracy" or "R² 0.946", or a dash."""
    if run.accuracy is not None:
        return f"{run.accuracy:.2%} accuracy"
    return "–" if run.r2 is None else f"R² {run.r2:.3f}"


def setting(run: RunSummary, field: str) -> str:
    """A setting in a word or two: "batch 64", "CNN", "on CPU"."""
    return f"on {device(run)}" if field == "device" else format.setting(run, field)


def device(run: RunSummary) -> str:
    """The kind of device that was asked for; for "auto", the device's own name."""
    kind = run.device or "auto"
    return format.NAMES[kind] if kind != "auto" else run.device_name or "Auto"


@cache
def _recipe(task: str, model: str, fast: bool) -> RunConfig:
    try:
        return RunConfig.with_recipe(task=task, model=model, fast=fast)
    except ValueError:  # a task of another version of this app
        return RunConfig()


def label(run: RunSummary) -> str:
    """A run's given name, and those of its settings that aren't defaults."""
    usual = _changed(run, fast=False)
    changed = usual or ["usual setting"]
    if run.model in FAST and len(fast := _changed(run, fast=True)) < len(usual):
        changed = ["fast setting", *fast]
    return joined(run.name, *changed, format.steered(run))


def joined(*parts: str) -> str:
    """The parts in one line, without the empty ones."""
    return " · ".join(filter(None, parts))


def _changed(run: RunSummary, fast: bool) -> list[str]:
    """The settings in which a run differs from its model's default or fast setting."""
    recipe = _recipe(run.task or "", run.model or "", fast)
    return [
        setting(run, field)
        for field in SETTINGS
        if field not in ("task", "model", "device")
        and getattr(run, field) != getattr(recipe, field)
    ]


def names(runs: Sequence[RunSummary], numbers: Mapping[str, int]) -> list[str]:
    """Each run's given name, or else its number among its owner's runs.

    If several runs have the same name, their numbers tell them apart.
    """
    titles = [run.name or f"Run {numbers[run.id]}" for run in runs]
    count = Counter(titles)
    return [
        f"{title} (run {numbers[run.id]})" if count[title] > 1 else title
        for title, run in zip(titles, runs, strict=True)
    ]


def search(runs: Sequence[RunSummary], text: str) -> list[RunSummary]:
    """Runs whose name, settings, device and status have all the words of the text."""
    words = text.casefold().split()

    def description(run: RunSummary) -> str:
        settings = (setting(run, field) for field in SETTINGS)
        parts = [run.name, *settings, run.device_name or "", run.status]
        return " ".join([*parts, format.steered(run)]).casefold()

    return [run for run in runs if all(word in description(run) for word in words)]


def alike(runs: Sequence[RunSummary], like: RunSummary) -> list[RunSummary]:
    """The runs comparable with `like`: same task and same criterion."""
    kind = (like.task, like.criterion)
    return [run for run in runs if (run.task, run.criterion) == kind]


def first_choice(runs: Sequence[RunSummary], most: int) -> list[str]:
    """At most `most` ids: the newest run with figures, and runs to compare it with."""
    measured = [run for run in runs if has_figures(run)] or list(runs)
    return [run.id for run in alike(measured, measured[0])[:most]]


def beside(runs: Sequence[RunSummary], run: RunSummary, most: int) -> list[str]:
    """At most `most` ids: the given run, and earlier runs to compare it with."""
    earlier = alike(runs[runs.index(run) + 1 :], run)
    return [run.id, *(other.id for other in earlier if has_figures(other))][:most]


def frontier(runs: Sequence[RunSummary]) -> list[str]:
    """The ids of runs that are better than every faster run, the fastest first."""
    ids: list[str] = []
    best = float("-inf")
    for run in sorted(runs, key=lambda run: (run.seconds or 0, -(quality(run) or 0))):
        if (reached := quality(run)) is not None and reached > best:
            best = reached
            ids.append(run.id)
    return ids
