"""The Speed page's ladder of training loops (rungs) and a climb's results."""

import math
from collections.abc import Sequence
from itertools import pairwise, takewhile

import altair as alt
import pandas as pd
import streamlit as st

from core.jobs import measurements
from core.jobs.job import Job
from core.lessons.speed import climb_result, rungs_page
from core.lessons.speed.climb_result import (
    BY_NAME,
    COUNTED_IMAGES,
    DEFAULTS,
    FIRST_STEPS,
    RANGES,
    RUNGS,
    Climb,
    Climbed,
    ClimbProgress,
    Counts,
    Result,
    Roofline,
)
from core.measure.environment import Machine
from core.ui import (
    answers,
    charts,
    controls,
    dataset,
    figures,
    format,
    guess,
    job_panel,
    last_measurement,
    simulated,
)
from core.ui.job_panel import JobPanel, latest, reported
from core.ui.lab import SIDES
from core.ui.source import show
from to_device.words import Words

PANEL = JobPanel(
    "core.lessons.speed.climb:climb",
    "The climb",
    "ladder",
    icon=":material/stairs:",
    measures=True,
)

RELU = 1 / 8  # operations per byte: it reads and writes four bytes for each one
words = Words(__file__)


def may_see(job: Job, who: str, given: guess.Given) -> bool:
    """Whether no rung's result is hidden from `who`, who gave these answers."""
    rungs = job.value.results if job.value else ()
    return all(rungs_page.is_revealed(rung, who, given) for rung in rungs)


def open_guesses(job: Job) -> float:
    """How many guesses the climb allows, over all rungs."""
    results = climb_result.measured(job.value.results)
    gains = (
        climb_result.gain_of(result, job.value.results) for result in results.values()
    )
    told = [len(climb_result.answers(gain)) for gain in gains if gain]
    return sum(told) + len(climb_result.GUESSES) * (len(climb_result.RUNGS) - len(told))


guess.GATES[PANEL.address] = may_see
last_measurement.OPEN_GUESSES[PANEL.address] = open_guesses


def draw(machine: Machine) -> None:
    climb, row, below = None, controls.row(), st.container()
    with row:
        with controls.startable(below):
            climb = choose_climb(machine)
        buttons(climb)
    if not PANEL.going_on and PANEL.job is None:
        below.caption(patience())
    follow(climb, machine)
    for job in measurements.recorded_by(PANEL.address):
        with st.expander(measurements.label(job)):
            st.markdown(climb_result.verdict(job.value))
            draw_table(job.value.newest_results, job.value.newest_results)
            draw_caption(job.value)
    with st.expander("How the rungs are measured", icon=":material/code:"):
        show(
            words("ladder.code"),
            "core.lessons.speed.climb:measure",
            words("ladder.code_of_headline"),
            "core.lessons.speed.climb:take_turns",
            words("ladder.code_of_limit"),
            "core.lessons.speed.roofline:matmul_rate",
        )


def choose_climb(machine: Machine) -> Climb:
    """Draw the settings and return them; raises ValueError if they are impossible."""
    devices = [device.device for device in machine.devices]
    task = controls.task("ladder_task", dataset.is_here(machine), width=148)
    model = controls.model("ladder_model", width=96)
    device = controls.choice("Device", "ladder_device", devices, "device", width=96)
    numbers = []
    labels, helps = words.table("ladder.length"), words.table("ladder.help")
    with st.popover("More", icon=":material/tune:"):
        for name, value, step in zip(RANGES, DEFAULTS[model], (1, 1000), strict=True):
            key, help = f"ladder_{name}_{model}", helps[name]
            number = controls.number(labels[name], key, value, step, name, help=help)
            numbers.append(number)
    return Climb(task, model, device, *numbers)


def patience() -> str:
    """How long a climb takes here, as far as an earlier one tells."""
    before = PANEL.before
    if before is None or not isinstance(before.value, Climbed):
        return "On a CPU, a climb takes several minutes. You can go to other pages."
    seconds = sum(
        result.start_seconds + sum(result.seconds) + sum(result.base_seconds)
        for result in before.value.results
    )
    minutes = format.counted(math.ceil(seconds / 60), "minute")
    return f"The last climb here took about {minutes}."


def results_of(job: Job) -> tuple[Result, ...]:
    """The results so far, of this climb and of the climbs that it resumed."""
    if isinstance(job.value, Climbed):
        return job.value.newest_results
    return (*job.arguments[1], *reported(job, Result))


def buttons(climb: Climb | None) -> None:
    if PANEL.going_on:
        PANEL.cancel_button()
        return
    done: tuple[Result, ...] = ()
    job = PANEL.job
    if job and job.value is None and job.arguments[0] == climb:
        done = results_of(job)
    label = "Resume the climb" if done else "Climb the ladder"
    PANEL.start_button(label, (climb, done) if climb else None, "run_ladder")
    if done:
        look = {"icon": ":material/restart_alt:", "type": "secondary"}
        PANEL.start_button("Start over", (climb, ()), "restart_ladder", **look)


def follow(climb: Climb | None, machine: Machine) -> None:
    """Draw the newest climb live; if there is none, draw the rungs for `climb`."""
    job = PANEL.job or PANEL.before
    climb = job.arguments[0] if job else climb
    backends = {device.device: device.backend for device in machine.devices}
    backend = backends.get(climb.device if climb else "", "CPU")
    waits = job is not None and job.status == "queued"

    def draw(now: Job) -> None:
        if waits:  # the queued climb has begun: remove what draw_unclimbed drew
            st.rerun()
        draw_climb(now, backend)

    if job is not None:
        if PANEL.job is None:
            last_measurement.tell(job)
        job_panel.follow(job, PANEL.job_name, draw, "climb")
    if job is None or waits:
        draw_unclimbed(backend, climb.model if climb else "ann")


@st.fragment
def draw_unclimbed(backend: str, model: str) -> None:
    """Draw the rungs before any climb, so that the learner can guess their gains."""
    left, right = st.columns(SIDES)
    with right:  # before the left side, since a rung's code takes less time to draw
        rungs_page.draw_chosen(False, (), backend, model)
    with left:
        rungs_page.draw_rows((), (), backend, model)


def draw_climb(job: Job, backend: str) -> None:
    results, climb = results_of(job), job.arguments[0]
    limits = job.value.limits if job.value else reported(job, Roofline)
    visible = [result for result in results if rungs_page.is_revealed(result)]
    left, right = st.columns(SIDES)
    with right:
        draw_status(job, backend)
        rungs_page.draw_chosen(True, results, backend, climb.model)
    with left:
        rungs_page.draw_rows(results, limits, backend, climb.model)
        answers.toggle("Just show me all the results", rungs_page.SHOW_ALL)
        if any(result.measured for result in visible):
            st.caption(words("ladder.dots", n=climb.epochs))
            draw_waterfall(visible, results, backend)
    if counts := job.value.counts if job.value else reported(job, Counts):
        with simulated.outline("ladder", explained=True):
            draw_counts(counts, climb.model)
    if limits and any(result.measured for result in visible):
        with st.expander("This machine's roofline", icon=":material/roofing:"):
            st.markdown(words("ladder.roofline"))
            draw_roofline(visible, results, limits[-1], backend)
    with st.expander("All figures", icon=":material/table:"):
        draw_table(visible, results)
        if job.value is not None:
            draw_caption(job.value)
            if len(visible) == len(results):  # the file would give away hidden results
                controls.download_rows("ladder", job.value.rows())


def draw_status(job: Job, backend: str) -> None:
    results = results_of(job)
    cancelled = (
        f"The climb was canceled after {len(results)} of {len(RUNGS)} "
        "rungs. Their results stay here, and you can resume the "
        "climb."
    )
    job_panel.ended_badly(job, "The climb ended early", cancelled)
    if not job.ended:
        with st.container(key="run_status"):  # page.css keeps this on a phone's screen
            text = progress(job)
            left = climb_result.seconds_left(results, job.arguments[0], backend)
            if left is not None and job.status != "queued":
                text += f" · about {format.roughly(left)} left"
            st.progress(len(results) / (len(RUNGS) + 1), text)
    elif job.value is None:
        if results:
            st.markdown(words("ladder.no_headline"))
    elif hidden := [r for r in results if not rungs_page.is_revealed(r)]:
        waiting = format.counted(len(hidden), "result is", "results are")
        text = f"The climb is done. {waiting} waiting for your guess."
        st.info(text, icon=":material/visibility_off:")
    else:
        st.success(climb_result.verdict(job.value), icon=":material/flag:")


def progress(job: Job) -> str:
    now, climb = latest(job, ClimbProgress), job.arguments[0]
    if now is None:
        return "Measuring this machine's limit"
    if not now.rung:
        return words("ladder.comparing", now=now, pairs=climb.pairs)
    title = BY_NAME[now.rung].title
    if not now.epoch and now.rung in rungs_page.COMPILED:
        return f"{title}: building its kernels (this can't be interrupted)"
    if not now.epoch:
        return f"{title}: setting up"
    return f"{title}: epoch {now.epoch} of {climb.epochs}, step {now.step:,}"


# The climb at a glance


def draw_waterfall(
    visible: Sequence[Result], results: Sequence[Result], backend: str
) -> None:
    """Chart the seconds per epoch saved by each rung of `kept_in_a_row`."""
    if any(climb_result.drifted(result, results) for result in visible):
        st.warning(words("ladder.drifted"), icon=":material/speed:")
        return
    steps = kept_in_a_row(visible, results)
    if len(steps) < 2:
        return
    titles = [BY_NAME[result.rung].title for result in steps]
    seconds = [result.epoch_seconds for result in steps]
    saved = [before - after for before, after in pairwise(seconds)]
    off, title = max(zip(saved, titles[1:], strict=True))
    st.markdown(
        f"**{title} saves the most: {off:.2f} s of the "
        f"{seconds[0]:.2f} s that an epoch took at first.**"
    )
    bars = [(titles[0], 0.0, seconds[0], f"{seconds[0]:.2f} s", True)]
    for title, ends in zip(titles[1:], pairwise(seconds), strict=True):
        change = f"{ends[1] - ends[0]:+.2f} s".replace("-", "−")
        bars.append((title, min(ends), max(ends), change, False))
    bars.append(("What is left", 0.0, seconds[-1], f"{seconds[-1]:.2f} s", True))
    frame = pd.DataFrame(bars, columns=["rung", "left", "end", "label", "whole"])
    colors = charts.palette()
    hue = colors.of(backend)
    rows = charts.rows(frame, "rung", tooltip=charts.tips(rung="Rung", label="Seconds"))
    x = alt.X("left:Q").title("Seconds per epoch").axis(format="~r")
    chart = charts.bars(
        rows,
        x.scale(domain=[0, frame["end"].max()]),
        "label:N",
        26,
        mark=rows.mark_bar(height=16, stroke=hue, strokeWidth=1.5),
        dx=8,
        x2="end:Q",
        fill=charts.either("datum.whole", hue, colors.page),
    )
    st.altair_chart(chart, alt="Seconds that each rung saves per epoch")


def kept_in_a_row(visible: Sequence[Result], results: Sequence[Result]) -> list[Result]:
    """The rungs that the climb kept, up to the first whose result is still hidden."""
    beginning = takewhile(lambda result: result in visible, results)
    return [result for result in beginning if result.measured and result.kept]


def draw_counts(counts: Sequence[Counts], model: str) -> None:
    title = BY_NAME[counts[0].rung].title
    never = (f"{BY_NAME[c.rung].title}: never." for c in counts if not c.waits)
    fields = {"waits": counts[0].waits, "images": COUNTED_IMAGES}
    st.markdown(
        (
            "**{title}: for {images:,} images, the host waits {waits} times. {never}**"
        ).format(title=title, never=next(never, ""), **fields)
    )
    most = max(c.waits for c in counts)
    figures.table(
        (
            (BY_NAME[c.rung].title, c.waits, c.copies, c.bytes / 1e6, c.operations)
            for c in counts
        ),
        ("Rung", "Host waits", "Copies", "MB copied", "Operations"),
        alt="Waits, copies, bytes, and operations for each rung",
        formats={"MB copied": "%.1f"},
        column_config={
            "Host waits": st.column_config.ProgressColumn(
                format="%d", min_value=0, max_value=most or 1
            ),
        },
    )
    obstacles = {rung.title: rung.obstacle("Simulated", model) for rung in RUNGS}
    reasons = (f"{title}: {reason}" for title, reason in obstacles.items() if reason)
    st.markdown(words("ladder.counts"))
    st.caption(f"Some rungs are left out. {' '.join(reasons)}")


def draw_roofline(
    visible: Sequence[Result], results: Sequence[Result], limit: Roofline, backend: str
) -> None:
    """Draw the most operations/s by operations per byte, and each rung's epoch."""
    rungs = pd.DataFrame(
        {
            "rung": BY_NAME[result.rung].title,
            "dtype": climb_result.precision(result.rung, results),
            "intensity": limit.flops_per_byte(result.samples, result.steps),
            "gflops": result.samples_per_second * limit.flops_per_image / 1e9,
        }
        for result in climb_result.measured(visible).values()
    )
    ridges = {
        dtype: max(rates) / max(limit.state_bytes_per_second)
        for dtype, rates in limit.flops_per_second.items()
    }
    low = min(RELU, rungs["intensity"].min()) / 2
    high = max(*ridges.values(), rungs["intensity"].max()) * 4
    roofs = pd.DataFrame(
        {"dtype": dtype, "intensity": at, "gflops": limit.roof(at, dtype) / 1e9}
        for dtype, ridge in ridges.items()
        for at in (low, ridge, high)
    )
    colors, rates = charts.palette(), pd.concat([roofs["gflops"], rungs["gflops"]])
    x = alt.X(
        "intensity:Q",
        axis=charts.ticks(charts.decades(low, high), format=",~g"),
        scale=alt.Scale(type="log", domain=[low, high], nice=False),
        title="Operations per byte",
    )
    y = alt.Y(
        "gflops:Q",
        axis=charts.ticks(charts.decades(rates.min(), rates.max()), format=",~g"),
        scale=alt.Scale(type="log", nice=False),
        title="Billion operations/s",
    )
    hues = dict(zip(ridges, (colors.quiet, colors.text), strict=False))
    roof = alt.Chart(roofs).encode(
        x=x, y=y, color=charts.hues("dtype", hues, hues.values())
    )
    dots = alt.Chart(rungs).encode(
        x=x,
        y=y,
        color=alt.value(colors.of(backend)),
        tooltip=charts.tips(rung="Rung", dtype="Precision")
        + charts.tips(",.3g", intensity="Operations per byte")
        + charts.tips(",.3g", gflops="Billion operations/s"),
    )
    roof, dots = roof.mark_line(), dots.mark_point(size=60, filled=True, opacity=1)
    st.altair_chart(
        alt.layer(roof, dots).properties(height=300),
        alt="This machine's roofline, with a dot for each rung, on logarithmic axes",
    )


def draw_table(visible: Sequence[Result], results: Sequence[Result]) -> None:
    """Draw a table of the `visible` results; their speedups need all `results`."""
    rows = [
        {
            "Rung": BY_NAME[result.rung].title,
            "Epoch, s": result.epoch_seconds,
            "Speedup": gain and gain.ratio,
            "Samples/s": round(result.samples_per_second),
            "Accuracy, %": 100 * result.accuracy,
            "Memory, MB": result.peak_bytes and result.peak_bytes / 1e6,
            "Least, s": min(result.newest),
            "Most, s": max(result.newest),
            "Kept": result.kept,
        }
        for result in climb_result.measured(visible).values()
        for gain in [climb_result.gain_of(result, results)]
    ]
    formats = dict.fromkeys(("Epoch, s", "Least, s", "Most, s"), "%.3f")
    formats |= {
        "Accuracy, %": "%.2f",
        "Samples/s": "%,d",
        "Memory, MB": "%.1f",
        "Speedup": "%.2f×",
    }
    alt = "Seconds, speedups, test accuracy, and peak memory of each rung"
    figures.table(rows, alt=alt, formats=formats)


def draw_caption(climbed: Climbed) -> None:
    config, limits = climbed.climb, climbed.limits
    rates = " and ".join(
        f"{max(max(limit.flops_per_second[dtype]) for limit in limits) / 1e9:,.0f} "
        f"GFLOP/s in {dtype}"
        for dtype in climbed.limit.flops_per_second
    )
    bandwidth = max(max(limit.bytes_per_second) for limit in limits)
    flops = climbed.limit.flops_per_image
    n = sum(len(limit.bytes_per_second) for limit in limits)
    limit = words("ladder.limit", flops=flops, rates=rates, gb=bandwidth / 1e9, n=n)
    if (config.model, climbed.environment.backend) == ("cnn", "CUDA"):
        limit += f" {words('ladder.tf32')}"
    with st.popover("How these figures were measured", icon=":material/timer:"):
        model, task = format.NAMES[config.model], format.NAMES[config.task]
        images = max(result.samples for result in climbed.results)
        epochs = (
            f"{model} on {task}: the median of n = {config.epochs} epochs of "
            f"{images:,} images after {FIRST_STEPS} warm-up steps, which don't count."
        )
        figures.bullets((epochs, *words.table("ladder.how"), limit))
        figures.caption("", climbed)
