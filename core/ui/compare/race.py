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
from core.config import RunConfig
from core.jobs.job import Job
from core.measure.environment import Machine
from core.measure.records import Record
from core.measure.rows import pick
from core.ui import controls, downloads, figures, format
from core.ui.charts import compare as charts
from core.ui.charts.base import AXES
from core.ui.compare import records
from core.ui.job_panel import JobPanel, latest, reported

RANGES = {"Steps": (10, 5000), "Repeats": (3, 30)}
HELP = {
    "Steps": "Training steps in a heat. Fewer where the slower contender would take "
    "more than two seconds for them.",
    "Repeats": "Counted heats of each contender, after one that is not counted.",
}
PANEL = JobPanel(
    "core.compare.race:race",
    "The race",
    "compare",
    icon=":material/flag:",
    primary=True,
    failed="The race ended early",
)


def draw(
    machine: Machine, has_data: bool, recorded: Sequence[Record]
) -> tuple[Candidate, Candidate]:
    """The controls, the race, and those that were recorded; returns the contenders."""
    with st.container(border=True):
        contenders = pair(machine)
        wanted = None
        with controls.startable():
            config, steps, repeats = settings(has_data)
            wanted = (config, contenders, steps, repeats)
    elsewhere: list[tuple[str, Race]] = records.of(recorded, "races")
    PANEL.buttons("Start the race", wanted)
    PANEL.follow(
        lambda job: result(job, elsewhere),
        ":material/flag: Both train the same model on the same batches and evaluate "
        "it, in turn, after a warm-up. Who wins, by how much and why appears here.",
    )
    for label, other in elsewhere:
        _recorded(label, other)
    return contenders


def pair(machine: Machine) -> tuple[Candidate, Candidate]:
    """The two contenders that the learner has chosen."""
    found = candidates(machine)
    with st.container(horizontal=True):
        first, second = (
            controls.choice(
                f"{number} contender",
                f"{number.lower()}_contender",
                found,
                index=found.index(default),
                format_func=lambda each: each.name,
                width=320,
            )
            for number, default in zip(
                ("First", "Second"), default_pair(found), strict=True
            )
        )
    if len(found) == 1:
        st.markdown(
            "This machine has one core and no accelerator: it can only race itself. "
            "An honest timer then finds no winner."
        )
    return tell_apart(first, second)


def settings(has_data: bool) -> tuple[RunConfig, int, int]:
    """The configuration, the steps and the repeats; ValueError where they can't be."""
    with st.container(horizontal=True):
        task = controls.task("race_task", has_data)
        model = controls.model("race_model")
        size = RunConfig.with_recipe(model=model).batch_size
        size = controls.number("Batch size", f"race_batch_{model}", size, 16)
        steps, repeats = (
            controls.number(name, key, value, step, help=HELP[name])
            for name, key, value, step in (
                ("Steps", f"race_steps_{model}", RACE_STEPS[model], 10),
                ("Repeats", "race_repeats", 5, 1),
            )
        )
    for name, value in (("Steps", steps), ("Repeats", repeats)):
        low, high = RANGES[name]
        if not low <= value <= high:
            raise ValueError(f"{name} must be from {low} to {high:,}, not {value}.")
    config = RunConfig.with_recipe(task=task, model=model, batch_size=size, epochs=1)
    return config, steps, repeats


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


def result(job: Job, elsewhere: Sequence[tuple[str, Race]] = ()) -> None:
    """Progress while it runs; then who wins, by how much, why, and all figures."""
    race = gather(job)
    done = job.status == "finished"
    if race is None and not job.ended:
        st.info("A worker is taking the race.", icon=":material/hourglass_top:")
    if race is None:
        return
    if not job.ended:
        _progress(job, race)
    for failure in race.failures:
        st.error(
            failure.message,
            title=f"{race.candidates[failure.candidate].name} is out",
            icon=":material/error:",
        )
    if done:
        st.info(verdict(race), icon=":material/flag:")
    _bars(race, elsewhere)
    if done:
        _speedups(race)
    _curves(job, race)
    if done:
        st.markdown(agreement(race))
        _caption(race)
        downloads.both("race", race.rows())


def _progress(job: Job, race: Race) -> None:
    progress = latest(job, TrialProgress)
    trials = 2 * (race.repeats + 1) - len(race.failures)
    text = "The data is being loaded"
    share = len(race.trials) / trials
    if progress is not None:
        which = f"repeat {progress.repeat} of {race.repeats}"
        which = which if progress.repeat else "warm-up"
        name = race.candidates[progress.candidate].name
        text = f"{name}, {which}: step {progress.step:,} of {progress.steps:,}"
        share += progress.step / progress.steps / trials
    st.progress(min(1.0, share), text)


def _bars(race: Race, elsewhere: Sequence[tuple[str, Race]]) -> None:
    """Training and evaluation, side by side, as far as there are heats of them."""
    if not race.trials:
        return
    for column, loop in zip(st.columns(2), ("training", "evaluation"), strict=True):
        rows = bars(race, loop, race.steps)
        for label, other in elsewhere:
            there = bars(other, loop, race.steps) if fits(other, race) else []
            rows += [
                row | {"contender": f"{row['contender']}, {label}"} for row in there
            ]
        with column:
            st.markdown(f"**{loop.capitalize()}**")
            if not rows:
                st.markdown("No counted heat yet.")
                continue
            st.altair_chart(
                charts.race_bars(pd.DataFrame(rows), race.candidates),
                alt=f"Seconds of {loop} of each contender: median, spread, warm-up",
            )


def bars(race: Race, loop: str, steps: int) -> list[dict[str, Any]]:
    """A row a contender, as charts.race_bars has it, with the seconds of so many steps.

    The warm-up may have had more of them than the others, and a record has its own.
    """
    rows = []
    training = loop == "training"
    for index, candidate in enumerate(race.candidates):
        if not (measured := race.seconds(index, loop)):
            continue
        trials = [trial for trial in race.trials if trial.candidate == index]
        warm_up, *seconds = (
            getattr(t, f"{LOOPS[loop]}seconds") * (steps / t.steps if training else 1)
            for t in trials
        )
        samples = getattr(trials[-1], f"{LOOPS[loop]}samples")
        row = {
            "contender": candidate.name,
            "seconds": median(seconds),
            "low": min(seconds),
            "high": max(seconds),
            "warm_up": warm_up,
            "speed": f"{samples / median(measured):,.0f} samples/s",
        }
        rows.append(row)
    return rows


def _speedups(race: Race) -> None:
    """A row a loop: how many times as fast, with its interval."""
    if not (both := race.speedup()):
        return
    names = [each.name for each in race.candidates]
    called = {None: "too close to call"} | dict(enumerate(names))
    figures.table(
        [
            {
                "Loop": loop,
                "Speed-up": f"{found.median:.3g}×",
                "Interval": "{:.3g}× to {:.3g}×".format(*found.interval),
                "Faster": called[found.winner],
            }
            for loop in LOOPS
            if (found := race.speedup(loop))
        ],
        alt="Speed-up of the second contender over the first, for each loop",
    )
    st.markdown(
        f"Speed-up: seconds of {names[0]} over seconds of {names[1]}, the median "
        f"of n = {both.n} pairs. The interval spans the least and the most of them, "
        f"which holds the true median in {both.confidence:.0%} of such races"
        + (", so take it lightly: n is small." if both.n < 5 else ".")
    )
    for index, name in enumerate(names):
        trials = race.counted(index)
        joules = [trial.joules for trial in trials if trial.joules is not None]
        if joules:
            each = median(joules) / trials[0].train_samples * 1e3
            st.markdown(
                f"{name} took {median(joules):,.1f} J a heat ({each:.3g} mJ for each "
                "image trained on, evaluation included): the whole board, as NVML "
                "counts it."
            )


def _curves(job: Job, race: Race) -> None:
    """The losses of the first counted heat of each."""
    # A heat that goes on has reported what it will hold when it has ended.
    heats: list[Trial | TrialProgress] = [*race.trials, *reported(job, TrialProgress)]
    rows = [
        (race.candidates[heat.candidate].name, *loss)
        for heat in heats
        if heat.repeat == 1
        for loss in heat.losses
    ]
    if not rows:
        return
    curves = pd.DataFrame(rows, columns=["contender", "step", "seconds", "loss"])
    x = st.radio(
        "Training loss of the first counted heat, over",
        ["seconds", "step"],
        horizontal=True,
        format_func=AXES.__getitem__,
        key="race_axis",
    )
    st.vega_lite_chart(
        curves.drop_duplicates(["contender", "step"]),
        charts.race_losses(race.candidates, x),
        key="race_losses",
        alt=f"Training loss of both contenders over {AXES[x].lower()}",
    )


def _caption(race: Race) -> None:
    config = race.config
    made = race.trials[0].steps if race.trials else race.steps
    scaled = f" ({made:,} steps, scaled)" if made != race.steps else ""
    n = max(len(race.counted(index)) for index in (0, 1))
    cut = f" of {race.repeats}, since it took long" if n < race.repeats else ""
    figures.caption(
        f"{format.NAMES[config.model]} on {format.NAMES[config.task]}, batch "
        f"{config.batch_size:,}, {race.steps:,} steps and the whole test set in each "
        f"heat, seed {config.seed}; bars are medians of n = {n}{cut}, the thin "
        f"line spans least to most, the hollow point is the warm-up{scaled}.",
        race,
    )


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
