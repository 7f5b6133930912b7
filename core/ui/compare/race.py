"""The race as the Compare page shows it: its controls, live, and its result."""

from collections.abc import Sequence
from statistics import median
from typing import Any

import pandas as pd
import streamlit as st

from core.compare.candidates import Candidate, candidates, default_pair, tell_apart
from core.compare.results import (
    LOOPS,
    RACE_STEPS,
    CandidateFailure,
    Race,
    RaceStarted,
    Trial,
    TrialProgress,
)
from core.compare.verdict import agreement, verdict
from core.config import RunConfig, problems
from core.jobs.job import Job
from core.measure.environment import Machine
from core.measure.records import Record
from core.measure.rows import pick
from core.ui import controls, downloads, figures, format, guess, hosts
from core.ui.charts import compare as charts
from core.ui.charts.base import AXES
from core.ui.classroom import held
from core.ui.compare import records
from core.ui.job_panel import JobPanel, latest, reported, slot

Heat = tuple[str, str, float, str]  # contender, kind, seconds, text
EXAMPLE = (  # seconds of training of two contenders, the warm-up first
    (0.72, 0.48, 0.47, 0.5, 0.48, 0.53),
    (0.8, 0.47, 0.52, 0.5, 0.54, 0.49),  # too close to tell anybody what to guess
)
RANGES = {"Steps": (10, 5000), "Repeats": (3, 30)}
HELP = {
    "Steps": "Training steps in a heat; fewer if the slower contender would "
    "take more than two seconds for them.",
    "Repeats": "Heats of each contender, after a warm-up that isn't counted.",
}
GUESS = "race_guess"
PANEL = JobPanel(
    "core.compare.race:race",
    "The race",
    "compare",
    icon=":material/flag:",
    failed="The race ended early",
)


def draw(machine: Machine, has_data: bool, recorded: Sequence[Record]) -> None:
    """The controls, the race, and those that were recorded."""
    found = contenders(machine)
    if all(each.backend == "CPU" for each in found):
        races = "only CPUs race" if found[0].host else "the CPU races itself"
        st.markdown(f"There's no accelerator here, so {races}.")
    wanted, row, below = None, controls.row(), st.container()
    with row:
        chosen = pair(found)
        with controls.startable(below):
            config, steps, repeats = settings(has_data)
            wanted = (config, chosen, steps, repeats)
        PANEL.buttons("Start the race", wanted)
    elsewhere: list[tuple[str, Race]] = records.of(recorded, "races")
    names = [each.name for each in chosen]
    with controls.row():
        guessed = guess.ask(
            GUESS, "which one wins?", [*names, guess.CLOSE], ran=PANEL.ran
        )
    if not PANEL.follow(lambda job: result(job, guessed, elsewhere)):
        _example(chosen)
    for label, other in elsewhere:
        _recorded(label, other)


def contenders(machine: Machine) -> list[Candidate]:
    """Who can race: of each machine that trains, where there are several."""
    return [
        each.on(host.name)
        for host in hosts.several()
        if host.trains and host.machine
        for each in candidates(held.machine(host.machine))
    ] or candidates(held.machine(machine))


def pair(found: Sequence[Candidate]) -> tuple[Candidate, Candidate]:
    """The two of these that the learner has chosen."""
    # One choice for all sections of the page, but where they have not the same options.
    where, width = ("_on", 230) if found[0].host else ("", 170)
    first, second = (
        controls.choice(
            label,
            f"{label.lower()}_contender{where}",
            found,
            index=found.index(default),
            format_func=lambda each: each.name,
            width=width,
        )
        for label, default in zip(("First", "Second"), default_pair(found), strict=True)
    )
    return tell_apart(first, second)


def settings(has_data: bool) -> tuple[RunConfig, int, int]:
    """The configuration, the steps and the repeats; ValueError where they can't be."""
    model = controls.model("race_model", width=100)
    size = RunConfig.with_recipe(model=model).batch_size
    size = controls.number(
        "Batch size", f"race_batch_{model}", size, 16, "batch_size", width=120
    )
    with st.popover("More", icon=":material/tune:"):
        task = controls.task("race_task", has_data)
        steps, repeats = (
            controls.number(name, key, value, step, name.lower(), help=HELP[name])
            for name, key, value, step in (
                ("Steps", f"race_steps_{model}", RACE_STEPS[model], 10),
                ("Repeats", "race_repeats", 5, 1),
            )
        )
    wanted: dict[str, Any] = {
        "task": task,
        "model": model,
        "batch_size": size,
        "epochs": 1,
    }
    told = [
        *problems(vars(RunConfig.with_recipe(model=model)) | wanted),
        *(
            f"{name} must be from {low} to {high:,}, not {value}."
            for (name, (low, high)), value in zip(
                RANGES.items(), (steps, repeats), strict=True
            )
            if not low <= value <= high
        ),
    ]
    if told:
        raise ValueError(" ".join(told))
    return RunConfig.with_recipe(**wanted), steps, repeats


def gather(job: Job) -> Race | None:
    """The race as far as it has come; None before it has begun."""
    if isinstance(job.value, Race):
        return job.value
    started = latest(job, RaceStarted)
    if started is None:
        return None
    trials = tuple(reported(job, Trial))
    steps = min([started.steps, *(trial.steps for trial in trials)])
    return Race(
        **vars(started) | {"steps": steps},
        environments=(None, None),
        trials=trials,
        failures=tuple(reported(job, CandidateFailure)),
        date="",
    )


def result(
    job: Job, guessed: str | None, elsewhere: Sequence[tuple[str, Race]] = ()
) -> None:
    """The heats as they are run; beside them, then, who wins, by how much and why."""
    race = gather(job)
    if race is None:
        if not job.ended:
            slot("The race is about to start.")
        return
    if not job.ended:
        slot(*_progress(job, race))
    if guess.missing(guessed):
        if job.ended:
            _example(race.candidates)
        return
    done = job.status == "finished"
    chart, beside = st.columns([6, 4], gap="medium")
    with beside:
        for failure in race.failures:
            st.error(
                failure.message,
                title=f"{race.candidates[failure.candidate].name} is out",
                icon=":material/error:",
            )
        if done:
            _judge(race, guessed)
            _speedups(race)
            st.markdown(agreement(race))
    with chart:
        _bars(race, elsewhere)
        _curves(job, race)
    if done:
        _caption(race)
        downloads.both("race", race.rows())


def _judge(race: Race, guessed: str | None) -> None:
    """Who wins, beside who was to; a guess at other contenders is none at these."""
    names, found = [each.name for each in race.candidates], race.speedup()
    won = None if found is None else found.winner
    right = guess.CLOSE if won is None else names[won]
    among = (*names, guess.CLOSE) if found else ()
    guess.judge(verdict(race), guessed, right, say=str, among=among)


def _progress(job: Job, race: Race) -> tuple[str, float]:
    """Whose heat it is, and which share of the race is run."""
    progress = latest(job, TrialProgress)
    trials = 2 * (race.repeats + 1) - len(race.failures)
    text = "The data is being loaded"
    share = len(race.trials) / trials
    if progress is not None:
        which = f"heat {progress.repeat} of {race.repeats}"
        which = which if progress.repeat else "warm-up"
        text = f"{race.candidates[progress.candidate].name}, {which}"
        share += progress.step / progress.steps / trials
    return text, min(1.0, share)


def _bars(race: Race, elsewhere: Sequence[tuple[str, Race]]) -> None:
    """Training and evaluation, one below the other, with every heat of them."""
    images = {"training": race.steps * race.config.batch_size, "evaluation": 0}
    for trial in race.trials[:1]:
        images["evaluation"] = trial.evaluate_samples
    for loop, count in images.items():
        names = [each.name for each in race.candidates]
        rows = heats(race, loop, race.steps, names)
        recorded: list[str] = []
        for label, other in elsewhere:
            if fits(other, race):
                called = [f"{each.name}, {label}" for each in other.candidates]
                rows += heats(other, loop, race.steps, called)
                recorded += called
        title = f"Seconds of {loop}{f', {count:,} images' * (count > 0)}"
        st.vega_lite_chart(
            pd.DataFrame(rows, columns=["contender", "kind", "seconds", "text"]),
            charts.race_bars(race.candidates, tuple(recorded), title),
            key=f"race_{loop}",
            alt=f"Seconds of {loop} of each contender: every heat, and their median",
        )
    st.caption(
        "Bar: the median heat, with its images/s on the right. Dots: the heats that "
        "count. Hollow dot: the warm-up, which doesn't count."
    )


def heats(race: Race, loop: str, steps: int, names: Sequence[str]) -> list[Heat]:
    """The rows of charts.race_bars, with the seconds of so many steps.

    The warm-up may have had more of them than the others, and a record has its own.
    """
    rows: list[Heat] = []
    training = loop == "training"
    for index, name in enumerate(names):
        trials = [trial for trial in race.trials if trial.candidate == index]
        seconds = [
            getattr(t, f"{LOOPS[loop]}seconds") * (steps / t.steps if training else 1)
            for t in trials
        ]
        kinds = ("heat" if trial.repeat else "warm-up" for trial in trials)
        rows += [(name, *each, "") for each in zip(kinds, seconds, strict=True)]
        if measured := race.seconds(index, loop):
            speed = getattr(trials[-1], f"{LOOPS[loop]}samples") / median(measured)
            rows.insert(0, (name, "median", median(seconds[1:]), ""))
            rows.append((name, "end", max(seconds), f"{speed:,.0f} images/s"))
    return rows


def _speedups(race: Race) -> None:
    """A row a loop: how many times as fast the second is, and its interval."""
    if not (both := race.speedup()):
        return
    names = [each.name for each in race.candidates]
    called = {None: "too close", 0: names[0], 1: names[1]}
    rows = []
    for loop in LOOPS:
        if found := race.speedup(loop):
            ratios = [found.median, *found.interval]
            if found.winner == 0:
                ratios = [1 / each for each in (found.median, *found.interval[::-1])]
            typical, low, high = (f"{format.times(each)}×" for each in ratios)
            winner = called[found.winner]
            by = typical if found.is_sure else ""
            rows.append((loop.capitalize(), winner, by, f"{low} to {high}"))
    figures.table(
        rows,
        ("Loop", "Faster", "By", "Least to most"),
        alt="Who is faster in each loop, and by how much",
    )
    st.caption(
        f"Medians of n = {both.n} pairs of heats; in {both.confidence:.0%} of races "
        "like this one, the true median lies between the least and the most"
        + (": a rough guide, since n is small." if both.n < 5 else ".")
    )
    for index, name in enumerate(names):
        trials = race.counted(index)
        joules = [trial.joules for trial in trials if trial.joules is not None]
        if joules:
            each = median(joules) / trials[0].train_samples * 1e3
            st.markdown(
                f"{name} took {median(joules):,.1f} J per heat ({each:.3g} mJ per "
                "training image, evaluation included), measured by NVML for the whole "
                "board."
            )


def _curves(job: Job, race: Race) -> None:
    """The losses of the first counted heat of each."""
    # A heat that goes on has reported what it will hold when it has ended.
    trials: list[Trial | TrialProgress] = [*race.trials, *reported(job, TrialProgress)]
    rows = [
        (race.candidates[heat.candidate].name, *loss)
        for heat in trials
        if heat.repeat == 1
        for loss in heat.losses
    ]
    x = st.radio(
        "First heat, over",
        ["seconds", "step"],
        horizontal=True,
        format_func=AXES.__getitem__,
        key="race_axis",
    )
    curves = pd.DataFrame(rows, columns=["contender", "step", "seconds", "loss"])
    st.vega_lite_chart(
        curves.drop_duplicates(["contender", "step"]),
        charts.race_losses(race.candidates, x),
        key="race_losses",
        alt=f"Training loss of both contenders over {AXES[x].lower()}",
    )


def _caption(race: Race) -> None:
    config = race.config
    n = max(len(race.counted(index)) for index in (0, 1))
    cut = f" of {race.repeats}, since it took long" if n < race.repeats else ""
    figures.caption(
        f"{format.NAMES[config.model]} on {format.NAMES[config.task]}, batch "
        f"{config.batch_size:,}, seed {config.seed}. n = {n}{cut} heats each, taking "
        "turns, after a warm-up.",
        race,
    )


def _example(pair: tuple[Candidate, Candidate]) -> None:
    """A race that nobody has run, of these contenders, until there is one."""
    config = RunConfig.with_recipe(task="sprites", model="ann", epochs=1)
    steps, samples = RACE_STEPS["ann"], RACE_STEPS["ann"] * config.batch_size
    trials = tuple(
        Trial(index, repeat, steps, seconds, samples, 0.1 * seconds, 10_000, None, ())
        for index, heats in enumerate(EXAMPLE)
        for repeat, seconds in enumerate(heats)
    )
    race = Race(pair, (None, None), config, steps, 5, trials, (), "")
    with figures.example("Start the race"):
        _bars(race, ())


def fits(other: Race, race: Race) -> bool:
    """Whether another race trained the same model on batches of the same size."""
    same = "task model batch_size"
    return pick(other.config, same) == pick(race.config, same)


def _recorded(label: str, race: Race) -> None:
    """A race of another machine, for whoever has not that machine."""
    config = race.config
    title = f"{format.NAMES[config.model]}, batch {config.batch_size:,}"
    with st.expander(f"Recorded: {label} · {title}"):
        st.markdown(verdict(race))
        figures.table(
            [
                {
                    "Contender": each["contender"],
                    "Loop": each["what"],
                    "Median": format.precise(each["median_seconds"]),
                    "Spread": format.spread(
                        [each["least_seconds"], each["most_seconds"]]
                    ),
                    "n": each["n"],
                }
                for each in race.rows()
            ],
            alt=f"The race of {label}: seconds of each contender and loop",
        )
        _caption(race)
