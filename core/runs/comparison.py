"""Runs compared: which was the fastest, how good each became, and what differs."""

from collections.abc import Sequence
from dataclasses import replace
from math import sqrt

from core.config import LABELS
from core.measure.speedup import Speedup, apart
from core.results import Epoch
from core.runs import listing
from core.store.tables import SETTINGS, RunSummary
from core.ui import format
from core.ui.runs import Run, summary
from core.words import Words, capitalized

# Compared runs are timed to the highest of these test accuracies that all reached.
LEVELS = (0.99, 0.98, 0.95, 0.9, 0.85, 0.8, 0.7, 0.6, 0.5)
Z = 1.96  # a 95% interval reaches this many standard errors to each side
words = Words(__file__)
APART = words("apart")
UNTIMED = "Runs on the simulated accelerator are not timed."


def level(runs: Sequence[Run]) -> float | None:
    """The highest of LEVELS that all of these runs have reached."""
    best = [max((e.test_accuracy or 0 for e in run.history), default=0) for run in runs]
    return next((level for level in LEVELS if best and min(best) >= level), None)


def seconds_to(level: float | None, history: Sequence[Epoch]) -> float | None:
    """Seconds of training until an epoch ended at this test accuracy or above."""
    seconds = 0.0
    for epoch in history:
        seconds += epoch.seconds
        if level is not None and (epoch.test_accuracy or 0) >= level:
            return seconds
    return None


def ranking(runs: Sequence[Run]) -> list[tuple[float, Run]]:
    """Finished runs, each with its seconds to the `level` of all; the fastest first.

    If there is no level that all have reached, the total seconds count. Runs that
    diverged are left out, and so are simulated runs, which aren't timed.
    """
    finished = [
        (run.result, run)
        for run in runs
        if run.result is not None and not run.is_simulated and not run.diverged
    ]
    goal = level([run for _, run in finished])
    timed = [(seconds_to(goal, run.history) or r.seconds, run) for r, run in finished]
    return sorted(timed, key=lambda pair: pair[0])


def lead(runs: Sequence[Run]) -> tuple[Run, Run, Speedup] | None:
    """The fastest run, the next one with other settings, and how far apart they are.

    If the speedup has no winner, either may be the faster one. None unless two finished
    runs differ in more than the seed.
    """
    ranked = ranking(runs)
    for seconds, run in ranked[1:]:
        shortest, first = ranked[0]
        if not same_work(run, first):
            one, other = ([e.seconds for e in r.history] for r in (run, first))
            gain = apart(one, other, seconds / shortest)
            low, high = gain.interval
            low = min(low, seconds / _times(first, ranked)[-1])
            return first, run, replace(gain, interval=(low, high))
    return None


def _times(like: Run, ranked: Sequence[tuple[float, Run]]) -> list[float]:
    return [seconds for seconds, run in ranked if same_work(run, like)]


def same_work(run: Run, other: Run) -> bool:
    """Whether the runs have the same settings and device, whatever their seeds."""
    devices = {r.started and r.started.environment.device_name for r in (run, other)}
    settings = {(replace(r.config, seed=0), tuple(r.changes)) for r in (run, other)}
    return len(devices) == len(settings) == 1


def fitting(runs: Sequence[Run], answers: Sequence[str], same: str) -> tuple:
    """The guesses at which run is fastest that the results don't rule out.

    `answers` has the guess that names each run, in the same order. `same` is the guess
    that there is no difference.
    """
    named = {run.id: answer for run, answer in zip(runs, answers, strict=True)}
    if (ahead := lead(runs)) is None:
        return (same,) * (len(ranking(runs)) > 1)
    first, following, gain = ahead
    return gain.answers(named[following.id], same, named[first.id])


def finding(runs: Sequence[Run], names: Sequence[str]) -> str:
    """Name the fastest of these runs and the best; "" if none has finished."""
    called = {run.id: name for run, name in zip(runs, names, strict=True)}
    ranked, lost = ranking(runs), [called[run.id] for run in runs if run.diverged]
    if not ranked and lost:
        return " ".join(f"**{capitalized(name)} diverged.**" for name in lost)
    if not ranked:
        untimed = [run for run in runs if run.result is not None]
        parts = [f"{called[run.id]}: {_reached(run)}" for run in untimed]
        return f"**{capitalized('; '.join(parts))}.** {UNTIMED}" if parts else ""
    finished = [run for _, run in ranked]
    best, *others = sorted(finished, key=_quality, reverse=True)
    others = [run for run in others if called[run.id] != called[best.id]]
    assert best.result is not None
    cost = f"{_reached(best)} in {format.duration(best.result.seconds)} with evaluation"
    diverged = "".join(f" {capitalized(name)} diverged." for name in lost)
    if not others:
        return f"**{capitalized(called[best.id])}: {cost}.{diverged}**"
    faster, more, better = "faster", "more", "better"
    if (count := len({called[run.id] for run in finished})) > 2:
        faster, more, better = f"the fastest of these {count}", "the most", "the best"
    goal, winner, when = level(finished), None, ""
    to = f"to reach {goal:.0%}" if goal else "in all"
    speed = words("same")
    if ahead := lead(finished):
        first, next_one, gain = ahead
        one, two = called[first.id], called[next_one.id]
        took, longer = (_taken(*_times(r, ranked)) for r in ahead[:2])
        varied = f"a factor of {gain.interval[1] / gain.ratio:.1f}"
        speed = (
            f"we can't tell which is faster: {one} took {took} {to}, and {two} took "
            f"{longer}. Epochs measured at different times may differ by {varied}."
        )
        if gain.winner is not None:
            winner, when = first, f" {APART}"
            speed = (
                f"{one} is {faster}: {took} {to}, {gain.ratio:.1f}× as fast as "
                f"{two}, which took {longer}."
            )
    speed += diverged
    if noise := _noise(best, others[0]):
        return (
            f"**{capitalized(speed)} In accuracy, {called[best.id]} and "
            f"{called[others[0].id]} are too close to call: {_quality(best):.2%} and "
            f"{_quality(others[0]):.2%}.**{when} On {_samples(best):,} test images, "
            f"chance alone can make a difference of {noise:.1%}."
        )
    rank = f"{more} accurate" if best.config.has_images else better
    who = f"{called[best.id]} is {'also ' * (best is winner)}{rank}"
    return f"**{capitalized(speed)} {capitalized(who)}: {cost}.**{when}"


def _taken(*seconds: float) -> str:
    first, last = (format.duration(seconds[place]) for place in (0, -1))
    others = f" (up to {last} in other runs with these settings)"
    return first + others * (len(seconds) > 1)


def _quality(run: Run) -> float:
    last = run.history[-1]
    return (last.test_r2 if last.test_accuracy is None else last.test_accuracy) or 0.0


def _reached(run: Run) -> str:
    assert run.result is not None
    return format.quality(run.result) + " accuracy" * run.config.has_images


def _samples(run: Run) -> int:
    return run.result.test_total if run.result else 0


def _noise(best: Run, other: Run) -> float:
    """The largest difference in accuracy that chance alone may make.

    0 if these runs differ by more, or if they have no accuracy.
    """
    p, q = _quality(best), _quality(other)
    if not best.config.has_images:
        return 0.0
    noise = Z * sqrt(p * (1 - p) / _samples(best) + q * (1 - q) / _samples(other))
    return noise if p - q <= noise else 0.0


def differing(runs: Sequence[RunSummary]) -> list[str]:
    """The settings in which runs differ; "auto" counts as the device that was used."""
    began = all(run.device_name for run in runs)

    def values(field: str) -> set[object]:
        column = "device_name" if field == "device" and began else field
        return {getattr(run, column) for run in runs}

    return [field for field in SETTINGS if len(values(field)) > 1]


def explained(runs: Sequence[RunSummary], names: Sequence[str]) -> list[str]:
    """The runs' names, each followed by the few settings that tell the runs apart."""

    def parts(fields: Sequence[str]) -> int:
        said = (tuple(listing.setting(run, field) for field in fields) for run in runs)
        return len(set(said))

    chosen: list[str] = []
    while left := [field for field in differing(runs) if field not in chosen]:
        most = max(left, key=lambda field: parts([*chosen, field]))
        if parts([*chosen, most]) == parts(chosen):
            break
        chosen.append(most)
    chosen.sort(key=SETTINGS.index)
    return [
        listing.JOIN.join(
            [name, *(listing.setting(run, field) for field in chosen)]
            + [format.STEERED] * bool(run.changes)
        )
        for run, name in zip(runs, names, strict=True)
    ]


def differences(runs: Sequence[Run]) -> list[tuple[str, ...]]:
    """Rows of a table: a setting's or a figure's name, then its value in each run."""
    summaries = [summary(run) for run in runs]
    rows = [
        (LABELS[field], *(_value(run, field) for run in summaries))
        for field in differing(summaries)
    ]
    goal = level(runs)
    timed = [None if r.is_simulated else seconds_to(goal, r.history) for r in runs]
    for title, form, figures in (
        ("Test accuracy", ".2%", [run.accuracy for run in summaries]),
        ("Test R²", ".3f", [run.r2 for run in summaries]),
        (f"Seconds to {goal or 0:.0%}", ".1f", timed),
        ("Total seconds", ".1f", [run.seconds for run in summaries]),
    ):
        if title == "Total seconds" or any(value is not None for value in figures):
            dashed = ("–" if value is None else f"{value:{form}}" for value in figures)
            rows.append((title, *dashed))
    return rows


def _value(run: RunSummary, field: str) -> str:
    if field == "device":
        return run.device_name or listing.device(run)
    return format.plain(getattr(run, field))
