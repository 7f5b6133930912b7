"""Compare runs: which was fastest, how good each one is, and what differs."""

from collections.abc import Sequence
from dataclasses import replace
from math import ceil, sqrt
from statistics import fmean

from core.config import LABELS
from core.measure.speedup import MOMENTS, Speedup, agree, unevenness, unpaired
from core.results import Epoch
from core.runs import listing, seeds
from core.store.tables import SETTINGS, RunSummary
from core.ui import format
from core.ui.runs import Run, summary
from core.ui.server import engine
from to_device.words import Words, capitalized

# To compare runs, their time is taken until they reach a test accuracy: the highest of
# these that all of the runs reached.
LEVELS = (0.99, 0.98, 0.95, 0.9, 0.85, 0.8, 0.7, 0.6, 0.5)
Z = 1.96  # a 95% interval reaches this many standard errors to each side
words = Words(__file__)
APART = (
    "The runs took place at different times, so other work may have slowed one of them."
)
# Runs to which others left shares of the processors that differ by less are alike.
ALIKE = 1.1
LEAST_LEFT = 0.01  # so much of the processors is left to a run in any case
UNTIMED = "Runs on the simulated accelerator are not timed."


def level(runs: Sequence[Run]) -> float | None:
    """The highest of LEVELS that all of these runs have reached."""
    best = [max((e.test_accuracy or 0 for e in run.history), default=0) for run in runs]
    return next((level for level in LEVELS if best and min(best) >= level), None)


def seconds_to(level: float | None, history: Sequence[Epoch]) -> float | None:
    """Seconds of training until an epoch ended at this test accuracy or above.

    None if no epoch did, or if `level` is None.
    """
    epochs = epochs_to(level, history)
    return sum(epoch.seconds for epoch in epochs) if epochs else None


def epochs_to(level: float | None, history: Sequence[Epoch]) -> Sequence[Epoch]:
    """The epochs until one ended at this test accuracy or above; () if none did."""
    if level is None:
        return ()
    reached = (n for n, e in enumerate(history, 1) if (e.test_accuracy or 0) >= level)
    return history[: next(reached, 0)]


def ranking(runs: Sequence[Run]) -> list[tuple[float, Run]]:
    """Pairs of seconds and a finished run, the fastest run first.

    The seconds are those until the run reached the `level` of all runs, or the
    total seconds if the runs share no level. Diverged runs are left out, and
    so are simulated runs, which aren't timed.
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
    """The fastest run, the fastest run with other settings, and the speedup.

    If the speedup has no winner, either run may be the faster one. None unless two
    finished runs differ in more than the seed.
    """
    ranked = ranking(runs)
    for seconds, run in ranked[1:]:
        shortest, first = ranked[0]
        if not same_work(run, first):
            gain = _gain(run, first, seconds / shortest, level([r for _, r in ranked]))
            low, high = gain.interval
            low = min(low, seconds / _times(first, ranked)[-1])
            return first, run, replace(gain, interval=(low, high))
    return None


def _gain(slower: Run, faster: Run, ratio: float, goal: float | None = None) -> Speedup:
    """The speedup, by how much the runs' epochs vary, and others' runs like them.

    On a busy machine, these vary more. If one of the two had less of the processors
    than the other, it may owe as much of the ratio to that, too.
    """
    gain = _of_times(slower, faster, ratio)
    low, high = gain.interval
    slowed = _slowed(slower, faster, goal)
    interval = low * min(slowed, 1.0), high * max(slowed, 1.0)
    return replace(gain, interval=interval)


def _of_times(slower: Run, faster: Run, ratio: float) -> Speedup:
    """The speedup as if the machine had been the same."""
    seconds = [[epoch.seconds for epoch in run.history] for run in (slower, faster)]
    gain = unpaired(seconds[0], seconds[1], ratio)
    varied = max(engine().spread(run.job) for run in (slower, faster))
    low, high = gain.interval
    return replace(gain, interval=(min(low, ratio / varied), max(high, ratio * varied)))


def _slowed(run: Run, other: Run, goal: float | None) -> float:
    """How much of the processors a run had, divided by what the other one had.

    Only the epochs until the test accuracy `goal` count, or all of them. It is 1 if
    that isn't known, or if other programs left about as much of the processors to
    both: then each run had what it could use.
    """
    mine, theirs = (_mean(each, "own_processors", goal) for each in (run, other))
    left = [max(1 - others_share(each, goal), LEAST_LEFT) for each in (run, other)]
    if not (mine and theirs) or agree(left, ALIKE):
        return 1.0
    return min(mine / theirs, 1.0) if left[0] < left[1] else max(mine / theirs, 1.0)


def others_share(run: Run, goal: float | None = None) -> float:
    """The share of the processors that other programs had during a run, or 0.

    Only the epochs until the test accuracy `goal` count, or all of them.
    """
    return _mean(run, "others_share", goal) or 0.0


def _mean(run: Run, field: str, goal: float | None) -> float | None:
    """The mean of an epoch's figure over the time of a run; None if it isn't known."""
    epochs = epochs_to(goal, run.history) or run.history
    shares = [getattr(epoch, field) for epoch in epochs]
    if not shares or None in shares:
        return None
    return fmean(shares, [epoch.seconds for epoch in epochs])


def _times(like: Run, ranked: Sequence[tuple[float, Run]]) -> list[float]:
    return [seconds for seconds, run in ranked if same_work(run, like)]


def same_work(run: Run, other: Run) -> bool:
    """Whether the runs have the same settings and device, whatever their seeds.

    A run that hasn't started has no device yet, only its settings.
    """
    started = [r.started for r in (run, other) if r.started]
    devices = {start.environment.device_name for start in started}
    settings = {(replace(r.config, seed=0), tuple(r.changes)) for r in (run, other)}
    return len(settings) == 1 and len(devices) <= 1


def fitting(runs: Sequence[Run], answers: Sequence[str], same: str) -> tuple:
    """Guesses at which run is fastest, except those that the results rule out.

    `answers` has one guess for each of `runs`, in the same order: that this
    run is the fastest. `same` is the guess that all are equally fast.
    """
    if (ahead := lead(runs)) is None:
        return (same,) * (len(ranking(runs)) > 1)
    first, following, gain = ahead
    return gain.answers(
        answers[runs.index(following)], same, answers[runs.index(first)]
    )


def finding(runs: Sequence[Run], names: Sequence[str]) -> str:
    """Say which run is fastest and which is best; "" if none has finished."""
    name_of = {run.id: name for run, name in zip(runs, names, strict=True)}
    diverged = [
        f"{capitalized(name_of[run.id])} diverged." for run in runs if run.diverged
    ]
    ranked = ranking(runs)
    if not ranked:
        if diverged:
            return " ".join(f"**{sentence}**" for sentence in diverged)
        untimed = [run for run in runs if run.result is not None]
        parts = [f"{name_of[run.id]}: {_reached(run)}" for run in untimed]
        return f"**{capitalized('; '.join(parts))}.** {UNTIMED}" if parts else ""
    finished = [run for _, run in ranked]
    best, *others = sorted(finished, key=_quality, reverse=True)
    others = [run for run in others if name_of[run.id] != name_of[best.id]]
    assert best.result is not None
    cost = f"{_reached(best)} in {format.duration(best.result.seconds)} with evaluation"
    if not others:
        sentences = [f"{capitalized(name_of[best.id])}: {cost}.", *diverged]
        return f"**{' '.join(sentences)}**"
    faster = "faster"
    if (count := len({name_of[run.id] for run in finished})) > 2:
        faster = f"the fastest of these {count}"
    goal, when = level(finished), ""
    to = f"to reach {goal:.0%}" if goal else "in all"
    speed = words("same")
    if ahead := lead(finished):
        first, following, gain = ahead
        name, slower = name_of[first.id], name_of[following.id]
        time, longer = _duration(first, ranked), _duration(following, ranked)
        busier = _busier(first, following, goal, name, slower)
        why = _why_close(first, following, gain.ratio, busier, name, slower)
        took = f"{to}, {name} took {time}, and {slower} took {longer}"
        is_single = all(len(_times(r, ranked)) == 1 for r in (first, following))
        speed, when = f"{took}: too close to call.", f" {capitalized(why)}"
        if whole := _whole(first, following, name, slower) if is_single else "":
            speed = f"{whole} {capitalized(took)}, too close for a verdict on that."
        if gain.winner is not None:
            when, by = f" {APART}", f"{gain.ratio:.1f}×"
            if busier and _slowed(following, first, goal) < 1:
                # What is left of the lead is certain, not how large it is.
                when = f" {capitalized(busier)}."
                by = f"at least {gain.interval[0]:.1f}×"
            speed = (
                f"{name} is {faster}: {time} {to}, {by} as fast as "
                f"{slower}, which took {longer}."
            )
        if goal:
            when = f" {_epochs(first, following, goal, name, slower)}{when}"
    fell = [
        f"{capitalized(name_of[run.id])} fell below {goal:.0%} again by its end."
        for run in (ahead[:2] if ahead else ())
        if goal and (run.history[-1].test_accuracy or 0) < goal
    ]
    speed = " ".join([speed, *fell, *diverged])
    return (
        f"**{capitalized(speed)}**{when} {_qualities(finished, best, others, name_of)}"
    )


def _epochs(first: Run, following: Run, goal: float, name: str, slower: str) -> str:
    """How many epochs two runs needed to reach a test accuracy."""
    needed, more = (len(epochs_to(goal, run.history)) for run in (first, following))
    if needed == more:
        return f"Both needed {format.counted(needed, 'epoch')} for that."
    count = format.counted(needed, "epoch")
    return f"{capitalized(name)} needed {count} for that, and {slower} {more}."


def _busier(
    first: Run, following: Run, goal: float | None, name: str, slower: str
) -> str:
    """During which of two runs the machine was busier; "" if during neither."""
    if _slowed(following, first, goal) == 1:
        return ""
    shares = {slower: others_share(following, goal), name: others_share(first, goal)}
    quiet, busy = sorted(shares, key=shares.__getitem__)
    return (
        f"the machine was busier during {busy}: other programs had {shares[busy]:.0%} "
        f"of its processors, and {shares[quiet]:.0%} during {quiet}"
    )


def _why_close(
    first: Run, following: Run, ratio: float, busier: str, name: str, slower: str
) -> str:
    """Why nobody can tell which of two runs was faster."""
    alike = _of_times(following, first, ratio)
    if busier and alike.winner is not None:
        return f"{busier}. Start both again, one right after the other."
    # Rounded up, so that the ratio of the times isn't above it.
    factor = ceil(10 * alike.interval[1] / alike.ratio - 1e-6) / 10
    for run, its in ((following, slower), (first, name)):
        seconds = [epoch.seconds for epoch in run.history]
        if len(seconds) > 1 and unevenness(seconds) > max(factor - 0.1, MOMENTS):
            return f"the epochs of {its} varied by a factor of {factor}."
    if max(engine().spread(run.job) for run in (first, following)) <= MOMENTS:
        return f"at another moment, such a run may take {factor} times as long."
    return (
        f"the time of such runs varied by a factor of {factor} on this machine. Start "
        "both again when nothing else runs."
    )


def _whole(first: Run, following: Run, name: str, slower: str) -> str:
    """A sentence on the whole training of two runs; "" unless one is surely faster."""
    seconds = [[epoch.seconds for epoch in run.history] for run in (following, first)]
    epochs = {*map(len, seconds)}
    total, shorter = map(sum, seconds)
    winner = _gain(following, first, total / shorter).winner
    if winner is None or len(epochs) > 1 or epochs == {1}:
        return ""
    times = {name: shorter, slower: total}
    less, more = sorted(times, key=times.__getitem__)
    took = " against ".join(format.duration(times[which]) for which in (less, more))
    return f"{less} is faster over all {epochs.pop()} epochs: {took}."


def _qualities(
    finished: Sequence[Run], best: Run, others: Sequence[Run], name_of: dict[str, str]
) -> str:
    """The qualities of the best run and of the best with other settings.

    A run may be better than another by its seed alone: settings are only called better
    if the runs of each of several seeds are. Else the difference is held against what
    seeds changed in other runs, or if none tell, against the size of the test set.
    """
    other = next((run for run in others if not same_work(run, best)), others[0])
    pair = best, other
    if best.config.has_images:
        shares = (f"{name_of[run.id]} {_quality(run):.2%}" for run in pair)
        text = f"Accuracy: {', '.join(shares)}"
    else:
        text = capitalized(", ".join(f"{name_of[r.id]}: {_reached(r)}" for r in pair))
    is_same, noise = same_work(best, other), _noise(best, other)
    if is_same and _quality(best) == _quality(other):
        return f"{text}."
    mine, theirs = ([r for r in finished if same_work(r, run)] for run in pair)
    count = min(len({run.config.seed for run in runs}) for runs in (mine, theirs))
    is_each = min(map(_quality, mine)) > max(map(_quality, theirs))
    if is_each and not is_same and not noise and count >= seeds.LEAST:
        return f"{text}: better with each of {count} seeds."
    if not is_same and (spread := _spread(*pair)):
        with_seeds = f"{spread.points} points ({spread.seeds} seeds, {spread.setting})"
        if round(_quality(best) - _quality(other), 4) <= spread.difference:
            return f"{text}: too close to call. Seeds alone changed {with_seeds}."
        return f"{text}. So far, seeds alone have changed less: {with_seeds}."
    if noise:
        return (
            f"{text}: too close to call. On {_samples(best):,} test images, chance "
            f"alone can make a difference of {noise:.1%}."
        )
    if is_same:
        return f"{text}."
    return f"{text}. With other seeds, it may be the other way around."


def _spread(*pair: Run) -> seeds.Spread | None:
    """What seeds change with the settings of one of these runs, or else with others.

    If the seeds of both are known, the larger change counts.
    """
    if not pair[0].config.has_images:
        return None
    spreads = seeds.spreads(seeds.known(pair[0].config.task))
    own = filter(None, [spreads.get(seeds.setting(summary(run))) for run in pair])
    most = max(own, key=lambda spread: spread.difference, default=None)
    return most or next(iter(spreads.values()), None)


def _duration(run: Run, ranked: Sequence[tuple[float, Run]]) -> str:
    """The run's time, and the longest time of other runs with its settings."""
    shortest, *others = map(format.duration, _times(run, ranked))
    return shortest + (
        f" (up to {others[-1]} in other runs with these settings)" if others else ""
    )


def _quality(run: Run) -> float:
    return listing.quality(summary(run)) or 0.0


def _reached(run: Run) -> str:
    assert run.result is not None
    quality = format.quality(run.result)
    return f"{quality} accuracy" if run.config.has_images else quality


def _samples(run: Run) -> int:
    return run.result.test_total if run.result else 0


def _noise(best: Run, other: Run) -> float:
    """The largest difference in accuracy that chance alone may make.

    The result is 0 if the runs differ by more, or have no accuracy.
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

    def groups(fields: Sequence[str]) -> int:
        """How many groups of runs these fields tell apart."""
        texts = (tuple(listing.setting(run, field) for field in fields) for run in runs)
        return len(set(texts))

    fields: list[str] = []
    while others := [field for field in differing(runs) if field not in fields]:
        best = max(others, key=lambda field: groups([*fields, field]))
        if groups([*fields, best]) == groups(fields):
            break
        fields.append(best)
    fields.sort(key=SETTINGS.index)
    return [
        listing.joined(
            name,
            *(listing.setting(run, field) for field in fields),
            format.steered(run),
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
