"""The ladder as the Speed page shows it: its controls, and the climb at a glance."""

from collections.abc import Sequence
from statistics import median
from typing import Any

import pandas as pd
import streamlit as st

from core.jobs.job import Job
from core.measure.environment import Machine
from core.speed import ladder
from core.speed.ladder import BY_NAME, RUNGS, Climb, Climbed, Progress, Result, Roofline
from core.ui import controls, downloads, figures, format, job_panel
from core.ui.charts import speed as charts
from core.ui.compare import records
from core.ui.job_panel import JobPanel, latest, reported
from core.ui.speed import rungs

PANEL = JobPanel(
    "core.speed.climb:climb",
    "The climb",
    "ladder",
    icon=":material/stairs:",
    primary=True,
)
COMPILED = ("compiled", "whole_step")  # rungs that take a while before their first step


def draw(machine: Machine, has_data: bool) -> None:
    """The controls, the climb, the rungs one by one; then what was recorded."""
    with st.container(border=True):
        wanted = None
        try:
            wanted = settings(machine, has_data)
        except ValueError as error:
            st.warning(f"{error} Nothing can be started.", icon=":material/info:")
    buttons(wanted)
    follow(wanted, machine)
    for label, done in records.of(records.recordings(), "climbs"):
        _recorded(label, done)


def settings(machine: Machine, has_data: bool) -> Climb:
    """What the learner wants to climb with; ValueError where it can't be."""
    devices = [each.device for each in machine.devices]
    with st.container(horizontal=True):
        task = controls.task("ladder_task", has_data)
        model = controls.model("ladder_model")
        device = controls.choice("Device", "ladder_device", devices)
        epochs, images = ladder.DEFAULTS[model]
        epochs = controls.number(
            "Epochs on each rung",
            f"ladder_epochs_{model}",
            epochs,
            1,
            persist_state="session",
            help="Each is timed by itself, in turn with one of the rung before: how "
            "far they are apart says how sure it is. More of them also learn more.",
        )
        images = controls.number(
            "Images in an epoch",
            f"ladder_images_{model}",
            images,
            1000,
            persist_state="session",
            help="The first of the training set. Fewer are quicker and learn less.",
        )
    return Climb(task, model, device, epochs, images)


def results(job: Job) -> tuple[Result, ...]:
    """What is measured so far, by this climb and by those that it resumed."""
    if isinstance(job.value, Climbed):
        return job.value.results
    done = job.arguments[1] if len(job.arguments) > 1 else ()
    return (*done, *reported(job, Result))


def buttons(wanted: Climb | None) -> None:
    """Start, cancel, and where a climb ended early, resume."""
    job = PANEL.job
    done: tuple[Result, ...] = ()
    if job is not None and job.ended and job.arguments[0] == wanted:
        done = results(job)
    to_resume = 0 < len(done) < len(RUNGS)
    anew = None if wanted is None else (wanted, ())
    again = (wanted, done) if to_resume else anew
    label = "Resume the climb" if to_resume else "Climb the ladder"
    with st.container(horizontal=True):
        PANEL.start_button(label, again, "run_ladder")
        if to_resume:
            PANEL.start_button(
                "Start over",
                anew,
                "restart_ladder",
                icon=":material/restart_alt:",
                type="secondary",
            )
        PANEL.cancel_button()


def follow(wanted: Climb | None, machine: Machine) -> None:
    """The climb, live, and below it the rungs one by one."""
    job = PANEL.job
    chosen = job.arguments[0] if job is not None else wanted
    backends = {each.device: each.backend for each in machine.devices}
    backend = backends.get(chosen.device if chosen else "", "CPU")
    waits = job is not None and job.status == "queued"

    def draw(now: Job) -> None:
        if waits:  # no longer: what stands below would be drawn twice
            st.rerun()
        climb(now, backend)

    if job is None:
        st.markdown(
            ":material/stairs: The climb appears here, rung by rung, with a line at "
            "the limit of this machine. Read the rungs below meanwhile, and guess."
        )
    else:
        job_panel.follow(job, PANEL.what, draw)
    if job is None or waits:
        rungs.draw(None, (), backend, chosen.model if chosen else "ann")


def climb(job: Job, backend: str) -> None:
    """What is known of a climb: status, chart, table, and the rung that is chosen."""
    _status(job)
    found = results(job)
    limit = job.value.limit if job.value else latest(job, Roofline)
    wanted: Climb = job.arguments[0]
    shown = [each for each in found if rungs.is_revealed(each)]
    if any(each.measured for each in shown):
        overview(shown, found, limit, backend)
    if job.value is not None:
        caption(job.value)
        downloads.both("ladder", job.value.rows())
    rungs.draw(job.id, found, backend, wanted.model)


def _status(job: Job) -> None:
    found = results(job)
    cancelled = (
        f"Cancelled after {len(found)} of {len(RUNGS)} rungs. They stay here, and "
        "the climb can be resumed."
    )
    job_panel.ended_badly(job, "The climb ended early", cancelled)
    if not job.ended:
        st.progress(len(found) / len(RUNGS), _progress(job))
    elif job.value is None:
        return
    elif hidden := [each for each in found if not rungs.is_revealed(each)]:
        st.info(
            f"The climb is done, and {len(hidden)} results wait for your guess.",
            icon=":material/visibility_off:",
        )
    else:
        st.success(in_words(job.value), icon=":material/flag:")


def _progress(job: Job) -> str:
    now = latest(job, Progress)
    if now is None:
        return "The limit of this machine is being measured"
    title = BY_NAME[now.rung].title
    if not now.epoch and now.rung in COMPILED:
        return f"{title}: building its kernels; a cancel waits for them"
    if not now.epoch:
        return f"{title}: setting up"
    return f"{title}: epoch {now.epoch} of {job.arguments[0].epochs}, step {now.step:,}"


# The climb at a glance


def overview(
    found: Sequence[Result],
    every: Sequence[Result],
    limit: Roofline | None,
    backend: str,
) -> None:
    """The chart with the machine's limit, and a table of all figures.

    Of the rungs in `found`; `every` holds those they are compared with too.
    """
    measured = [each for each in found if each.measured]
    rows = [
        (
            BY_NAME[each.rung].title,
            each.samples_per_second,
            each.samples / max(each.seconds),
            each.samples / min(each.seconds),
            rungs.times(ladder.over_first(each, every)) if each.base else "",
            each.kept,
        )
        for each in measured
    ]
    columns = ["rung", "speed", "low", "high", "label", "kept"]
    lines = limits(limit, measured[-1], any(r.rung == "half_precision" for r in found))
    st.altair_chart(
        charts.climb(pd.DataFrame(rows, columns=columns), pd.DataFrame(lines), backend),
        alt="Samples a second on each rung, with the limit of this machine",
    )
    table(found, every)


def limits(limit: Roofline | None, last: Result, half: bool) -> list[dict[str, Any]]:
    """A row a line of the chart: float32 always, 16 bits where a rung uses them."""
    if limit is None:
        return []
    dtypes = ["float32", "bfloat16"] if half else ["float32"]
    return [
        {"text": f"limit, {dtype}", "speed": last.samples / seconds}
        for dtype in dtypes
        if dtype in limit.flops_per_second
        for seconds in [limit.seconds(last.samples, last.steps, dtype)]
    ]


def table(found: Sequence[Result], every: Sequence[Result]) -> None:
    """A row for each rung of `found`; `every` holds those they are compared with."""
    rows = []
    for each in found:
        if not each.measured:
            continue
        gain = rungs.gain(each, every)
        rows.append(
            (
                BY_NAME[each.rung].title,
                format.precise(each.epoch_seconds),
                f"{min(each.seconds):.3g} to {max(each.seconds):.3g}",
                f"{each.samples_per_second:,.0f}",
                rungs.times(gain.median) if gain else "",
                rungs.times(ladder.over_first(each, every)) if gain else "",
                f"{each.accuracy:.2%}",
                format.size(each.peak_bytes),
                "yes" if each.kept else "no",
            )
        )
    figures.table(
        rows,
        [
            *("Rung", "Epoch", "Spread, s", "Samples/s", "× before", "× textbook"),
            *("Accuracy", "Memory", "Kept"),
        ],
        "Seconds, speed-ups, test accuracy and peak memory of each rung",
    )


def in_words(done: Climbed) -> str:
    """How far the climb went: the best rung, over the textbook and to the limit."""
    kept = [each for each in done.results if each.kept]
    if not kept:
        return "No rung could be measured here; each says why below."
    best = max(kept, key=lambda each: each.samples_per_second)
    title = BY_NAME[best.rung].title
    text = (
        f"**{title} is the best rung: {format.precise(best.epoch_seconds)} an epoch**"
    )
    first = rungs.find(done.results, RUNGS[0].name)
    if first is not None and first is not best:
        factor = ladder.over_first(best, done.results)
        if factor is not None:
            text += f", {factor:.1f} times as fast as the textbook loop"
    climbed = done.results[: done.results.index(best) + 1]
    half = ladder.kept(climbed).half and "bfloat16" in done.limit.flops_per_second
    dtype = "bfloat16" if half else "float32"
    return f"{text}. {to_the_limit(done.limit, best, dtype)}"


def to_the_limit(limit: Roofline, best: Result, dtype: str) -> str:
    """How much of an epoch is the machine's limit, and which limit that is."""
    images, steps = best.samples, best.steps
    arithmetic = limit.arithmetic_seconds(images, dtype)
    seconds = limit.seconds(images, steps, dtype)
    what = "arithmetic" if seconds == arithmetic else "moving bytes"
    return (
        f"At this machine's measured limit for {dtype}, which is {what}, it would take "
        f"{format.precise(seconds)}: the rung takes "
        f"{best.epoch_seconds / seconds:.1f} times that."
    )


def caption(done: Climbed) -> None:
    """How it was measured, and where the limit comes from."""
    limit, config = done.limit, done.climb
    rates = " and ".join(
        f"{median(rates) / 1e9:,.0f} GFLOP/s in {dtype}"
        for dtype, rates in limit.flops_per_second.items()
    )
    n = len(limit.bytes_per_second)
    st.caption(
        f"{format.NAMES[config.model]} on {format.NAMES[config.task]}. Bars are the "
        f"median of n = {config.epochs} epochs after {ladder.FIRST_STEPS} steps that "
        "are not counted, thin lines span least to most; pale rungs were taken back. "
        "× before compares epochs timed in turn with those of the rung that it "
        "changes, and × textbook multiplies these. "
        "Accuracy after all epochs, on all test images. Peak memory: tensors that "
        "some steps need at once, beyond the model; worker processes not counted. "
        f"Limit: {limit.flops_per_image:,.0f} floating-point operations for an image, "
        f"at the {rates} of a large matrix product; memory moves "
        f"{median(limit.bytes_per_second) / 1e9:,.1f} GB/s in large blocks (median of "
        f"n = {n}). {format.provenance(done.environment)}. {done.date[:10]}."
    )


def _recorded(label: str, done: Climbed) -> None:
    """A climb of another machine, for whoever has not that machine."""
    with st.expander(f"Recorded: {label} · {format.NAMES[done.climb.model]}"):
        st.markdown(in_words(done))
        overview(done.results, done.results, done.limit, done.environment.backend)
        caption(done)
