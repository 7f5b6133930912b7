"""The race as the Compare page shows it: its controls, live, and its result."""

from collections.abc import Sequence
from statistics import median

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
from core.ui import controls, downloads, figures, format
from core.ui.charts import compare as charts
from core.ui.charts.base import AXES
from core.ui.compare import records
from core.ui.job_panel import JobPanel, latest, reported

RANGES = {"Steps": (10, 5000), "Repeats": (3, 30)}
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
        try:
            config, steps, repeats = settings(has_data)
            wanted = (config, contenders, steps, repeats)
        except ValueError as error:
            st.warning(f"{error} Nothing can be started.", icon=":material/info:")
    elsewhere: list[tuple[str, Race]] = records.of(recorded, "races")
    PANEL.buttons("Start the race", wanted)
    PANEL.follow(
        lambda job: result(job, [e for e in elsewhere if fits(e[1], gather(job))]),
        ":material/flag: Both train the same model on the same batches and evaluate "
        "it, in turn, after a warm-up. Who wins, by how much and why appears here.",
    )
    for label, other in elsewhere:
        _recorded(label, other)
    return contenders


def pair(machine: Machine) -> tuple[Candidate, Candidate]:
    """The two contenders that the learner has chosen."""
    found = candidates(machine)
    first, second = default_pair(found)
    chosen = []
    with st.container(horizontal=True):
        for number, default in (("First", first), ("Second", second)):
            contender = controls.choice(
                f"{number} contender",
                f"{number.lower()}_contender",
                found,
                index=found.index(default),
                format_func=lambda each: each.name,
                width=320,
            )
            chosen.append(contender)
    if len(found) == 1:
        st.markdown(
            "This machine has one core and no accelerator: it can only race itself. "
            "An honest timer then finds no winner."
        )
    return tell_apart(*chosen)


def settings(has_data: bool) -> tuple[RunConfig, int, int]:
    """The configuration, the steps and the repeats; ValueError where they can't be."""
    with st.container(horizontal=True):
        task = controls.task("race_task", has_data)
        model = controls.model("race_model")
        default = RunConfig.with_recipe(model=model).batch_size
        batch_size = controls.number("Batch size", f"race_batch_{model}", default, 16)
        steps = controls.number(
            "Steps",
            f"race_steps_{model}",
            RACE_STEPS[model],
            10,
            help="Training steps in a heat. Fewer where the slower contender would "
            "take more than two seconds for them.",
        )
        repeats = controls.number(
            "Repeats",
            "race_repeats",
            5,
            1,
            help="Counted heats of each contender, after one that is not counted.",
        )
    for name, value in (("Steps", steps), ("Repeats", repeats)):
        low, high = RANGES[name]
        if not low <= value <= high:
            raise ValueError(f"{name} must be from {low} to {high:,}, not {value}.")
    config = RunConfig.with_recipe(
        task=task, model=model, batch_size=batch_size, epochs=1
    )
    return config, steps, repeats


def gather(job: Job) -> Race | None:
    """The race as far as it has come; None before it has begun."""
    if isinstance(job.value, Race):
        return job.value
    started = latest(job, RaceStarted)
    if started is None:
        return None
    trials = tuple(reported(job, Trial))
    return Race(
        started.candidates,
        (None, None),
        started.config,
        min([started.steps, *(trial.steps for trial in trials)]),
        started.repeats,
        trials,
        tuple(reported(job, CandidateFailure)),
        "",
    )


def result(job: Job, elsewhere: Sequence[tuple[str, Race]] = ()) -> None:
    """Progress while it runs; then who wins, by how much, why, and all figures."""
    race = gather(job)
    done = job.status == "finished"
    if race is None:
        if not job.ended:
            st.info("A worker is taking the race.", icon=":material/hourglass_top:")
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
    if done and race.speedup() is not None:
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
        which = (
            f"repeat {progress.repeat} of {race.repeats}"
            if progress.repeat
            else "warm-up"
        )
        name = race.candidates[progress.candidate].name
        text = f"{name}, {which}: step {progress.step:,} of {progress.steps:,}"
        share += progress.step / progress.steps / trials
    st.progress(min(1.0, share), text)


def _bars(race: Race, elsewhere: Sequence[tuple[str, Race]]) -> None:
    """Training and evaluation, side by side, as far as there are heats of them."""
    if not race.trials:
        return
    backends = tuple(each.backend for each in race.candidates)
    names = tuple(each.name for each in race.candidates)
    for column, loop in zip(st.columns(2), ("training", "evaluation"), strict=True):
        table = bars_frame(race, loop)
        for label, other in elsewhere:
            table = pd.concat([table, bars_frame(other, loop, label, race)])
        with column:
            st.markdown(f"**{loop.capitalize()}**")
            if table.empty:
                st.markdown("No counted heat yet.")
                continue
            st.altair_chart(
                charts.race_bars(table, names, backends),
                alt=f"Seconds of {loop} of each contender: median, spread, warm-up",
            )


def bars_frame(
    race: Race, loop: str, label: str = "", beside: Race | None = None
) -> pd.DataFrame:
    """A row a contender. What was recorded counts as many steps as the race beside."""
    rows = []
    for index, candidate in enumerate(race.candidates):
        counted, seconds = race.counted(index), race.seconds(index, loop)
        if not counted:
            continue
        first = counted[0]
        training = loop == "training"
        samples = first.train_samples if training else first.evaluate_samples
        scale = 1.0
        if beside is not None and training:
            scale = beside.steps / race.steps
        warm_up = next(h for h in race.trials if h.candidate == index and h.repeat == 0)
        # The warm-up may have had more steps than the others.
        unit = warm_up.train_seconds * race.steps / warm_up.steps
        rows.append(
            (
                f"{candidate.name}, {label}" if label else candidate.name,
                median(seconds) * scale,
                min(seconds) * scale,
                max(seconds) * scale,
                (unit if training else warm_up.evaluate_seconds) * scale,
                f"{samples / median(seconds):,.0f} samples/s",
            )
        )
    return pd.DataFrame(
        rows, columns=["contender", "seconds", "low", "high", "warm_up", "speed"]
    )


def _speedups(race: Race) -> None:
    """A row a loop: how many times as fast, with its interval."""
    rows = []
    first, second = race.candidates
    for loop in LOOPS:
        found = race.speedup(loop)
        if found is None:
            continue
        low, high = found.interval
        called = "too close to call"
        if found.winner is not None:
            called = race.candidates[found.winner].name
        rows.append((loop, f"{found.median:.3g}", f"{low:.3g} to {high:.3g}", called))
    figures.table(
        rows,
        ["Loop", "Speed-up", "Interval", "Faster"],
        "Speed-up of the second contender over the first, for each loop",
    )
    found = race.speedup()
    assert found is not None
    st.markdown(
        f"Speed-up: seconds of {first.name} over seconds of {second.name}, the median "
        f"of n = {found.n} pairs. The interval spans the least and the most of them, "
        f"which holds the true median in {found.confidence:.0%} of such races"
        + (", so take it lightly: n is small." if found.n < 5 else ".")
    )
    for index, candidate in enumerate(race.candidates):
        joules = [h.joules for h in race.counted(index) if h.joules is not None]
        if joules:
            samples = race.counted(index)[0].train_samples
            st.markdown(
                f"{candidate.name} took {median(joules):,.1f} J a heat "
                f"({median(joules) / samples * 1e3:.3g} mJ for each image trained on, "
                "evaluation included): the whole board, as NVML counts it."
            )


def _curves(job: Job, race: Race) -> None:
    """The losses of the first counted heat of each."""
    names = tuple(each.name for each in race.candidates)
    rows: list[tuple[str, int, float, float]] = []
    for index, name in enumerate(names):
        losses = [loss for trial in race.counted(index)[:1] for loss in trial.losses]
        if not losses:
            losses = [
                loss
                for event in reported(job, TrialProgress)
                if (event.candidate, event.repeat) == (index, 1)
                for loss in event.losses
            ]
        rows.extend((name, *loss) for loss in losses)
    if not rows:
        return
    x = st.radio(
        "Training loss of the first counted heat, over",
        ["seconds", "step"],
        horizontal=True,
        format_func=AXES.__getitem__,
        key="race_axis",
    )
    backends = tuple(each.backend for each in race.candidates)
    st.vega_lite_chart(
        pd.DataFrame(rows, columns=["contender", "step", "seconds", "loss"]),
        charts.race_losses(names, backends, x),
        key="race_losses",
        alt=f"Training loss of both contenders over {AXES[x].lower()}",
    )


def _caption(race: Race) -> None:
    config = race.config
    where = [format.provenance(each) for each in race.environments if each]
    fewer = race.trials[0].steps if race.trials else race.steps
    n = max(len(race.counted(index)) for index in (0, 1))
    cut = f" of {race.repeats}, since it took long" if n < race.repeats else ""
    st.caption(
        f"{format.NAMES[config.model]} on {format.NAMES[config.task]}, batch "
        f"{config.batch_size:,}, {race.steps:,} steps and the whole test set in each "
        f"heat, seed {config.seed}; bars are medians of n = {n}{cut}, the thin "
        "line spans least to most, the hollow point is the warm-up"
        + (f" ({fewer:,} steps, scaled)" if fewer != race.steps else "")
        + f". {'; '.join(dict.fromkeys(where))}. {race.date[:10]}."
    )


def fits(other: Race, race: Race | None) -> bool:
    """Whether another race trained the same model on batches of the same size."""
    return race is not None and all(
        getattr(other.config, name) == getattr(race.config, name)
        for name in ("task", "model", "batch_size")
    )


def _recorded(label: str, race: Race) -> None:
    """A race of another machine, for whoever has not that machine."""
    config = race.config
    title = f"{format.NAMES[config.model]}, batch {config.batch_size:,}"
    with st.expander(f"Recorded: {label} · {title}"):
        st.markdown(verdict(race))
        figures.table(
            [
                (
                    each["contender"],
                    each["what"],
                    format.precise(each["median_seconds"]),
                    format.spread([each["least_seconds"], each["most_seconds"]]),
                    each["n"],
                )
                for each in race.rows()
            ],
            ["Contender", "Loop", "Median", "Spread", "n"],
            f"The race of {label}: seconds of each contender and loop",
        )
        _caption(race)
