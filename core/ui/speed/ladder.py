"""The ladder as the Speed page shows it: its controls, and the climb at a glance."""

from collections.abc import Sequence
from statistics import median
from typing import Any

import pandas as pd
import streamlit as st

from core.jobs.job import Job
from core.measure.environment import Machine
from core.speed import headline, ladder
from core.speed.headline import Climbed, DirectProgress
from core.speed.ladder import BY_NAME, RUNGS, Climb, Progress, Result
from core.speed.results import Roofline
from core.ui import controls, downloads, figures, format, job_panel, measured
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
NO_HEADLINE = (
    "How many times as fast the best rung is as the textbook loop is measured last, "
    "the two in turn: a climb that ended early has no such figure."
)


def draw(machine: Machine, has_data: bool) -> None:
    """The controls, the climb, the rungs one by one; then what was recorded."""
    wanted = None
    with st.container(border=True), controls.startable():
        wanted = settings(machine, has_data)
    buttons(wanted)
    follow(wanted, machine)
    for label, done in records.of(records.recordings(), "climbs"):
        with st.expander(f"Recorded: {label} · {format.NAMES[done.climb.model]}"):
            st.markdown(headline.verdict(done))
            overview(done.results, done.results, done.limits, done.environment.backend)
            caption(done)


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
    return (*job.arguments[1], *reported(job, Result))


def buttons(wanted: Climb | None) -> None:
    """Start, cancel, and where a climb ended early, resume."""
    job = PANEL.job
    done = results(job) if job and job.ended and job.arguments[0] == wanted else ()
    anew = None if wanted is None else (wanted, ())
    with st.container(horizontal=True):
        if done and job and job.value is None:
            PANEL.start_button("Resume the climb", (wanted, done), "run_ladder")
            PANEL.start_button(
                "Start over",
                anew,
                "restart_ladder",
                icon=":material/restart_alt:",
                type="secondary",
            )
        else:
            PANEL.start_button("Climb the ladder", anew, "run_ladder")
        PANEL.cancel_button()


def follow(wanted: Climb | None, machine: Machine) -> None:
    """The climb, live, and below it the rungs one by one."""
    mine = PANEL.job
    job = mine or PANEL.before
    chosen = job.arguments[0] if job else wanted
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
        if mine is None:
            measured.tell(job)
        job_panel.follow(job, PANEL.what, draw, "climb")
    if job is None or waits:
        rungs.draw(False, (), backend, chosen.model if chosen else "ann")


def climb(job: Job, backend: str) -> None:
    """What is known of a climb: status, chart, table, and the rung that is chosen."""
    _status(job)
    found = results(job)
    limits = job.value.limits if job.value else reported(job, Roofline)
    shown = [each for each in found if rungs.is_revealed(each)]
    if any(each.measured for each in shown):
        overview(shown, found, limits, backend)
    if job.value is not None:
        caption(job.value)
        downloads.both("ladder", job.value.rows())
    rungs.draw(True, found, backend, job.arguments[0].model)


def _status(job: Job) -> None:
    found = results(job)
    cancelled = (
        f"Cancelled after {len(found)} of {len(RUNGS)} rungs. They stay here, and "
        "the climb can be resumed."
    )
    job_panel.ended_badly(job, "The climb ended early", cancelled)
    if not job.ended:
        st.progress(len(found) / (len(RUNGS) + 1), _progress(job))
    elif job.value is None:
        if found:
            st.markdown(NO_HEADLINE)
    elif hidden := [each for each in found if not rungs.is_revealed(each)]:
        st.info(
            f"The climb is done, and {len(hidden)} results wait for your guess.",
            icon=":material/visibility_off:",
        )
    else:
        st.success(headline.verdict(job.value), icon=":material/flag:")


def _progress(job: Job) -> str:
    last = latest(job, DirectProgress)
    if last is not None:  # which rung is best is not told: it may yet be guessed
        return (
            "The textbook loop against the best rung, in turn: "
            f"pair {last.pair} of {last.pairs}, step {last.step:,}"
        )
    now = latest(job, Progress)
    if now is None:
        return "The limit of this machine is being measured"
    title = BY_NAME[now.rung].title
    if not now.epoch and now.rung in rungs.COMPILED:
        return f"{title}: building its kernels; a cancel waits for them"
    if not now.epoch:
        return f"{title}: setting up"
    return f"{title}: epoch {now.epoch} of {job.arguments[0].epochs}, step {now.step:,}"


# The climb at a glance


def overview(
    found: Sequence[Result],
    every: Sequence[Result],
    limits: Sequence[Roofline],
    backend: str,
) -> None:
    """The chart with the machine's limit, and a table of all figures.

    Of the rungs in `found`; `every` holds those they are compared with too.
    """
    shown = [each for each in found if each.measured]
    bars = pd.DataFrame(
        {
            "rung": BY_NAME[each.rung].title,
            "speed": each.samples_per_second,
            "low": each.samples / max(each.seconds),
            "high": each.samples / min(each.seconds),
            "label": format.precise(each.epoch_seconds),
            "kept": each.kept,
        }
        for each in shown
    )
    half = any(each.rung == "half_precision" for each in found)
    lines = pd.DataFrame(at_best(limits, shown[-1], half))
    st.altair_chart(
        charts.climb(bars, lines, backend),
        alt="Samples a second on each rung, with the limit of this machine",
    )
    figures.table(
        (_figures(each, every) for each in shown),
        alt="Seconds, speed-ups, test accuracy and peak memory of each rung",
    )


def at_best(
    limits: Sequence[Roofline], last: Result, half: bool
) -> list[dict[str, Any]]:
    """A row a line of the chart: float32 always, 16 bits where a rung uses them.

    The fastest reading counts: a limit is what the machine can do at best.
    """
    dtypes = ["float32", "bfloat16"] if half else ["float32"]
    return [
        {"text": f"limit, {dtype}", "speed": last.samples / min(seconds)}
        for dtype in dtypes
        if (
            seconds := [
                each.seconds(last.samples, last.steps, dtype)
                for each in limits
                if dtype in each.flops_per_second
            ]
        )
    ]


def _figures(each: Result, every: Sequence[Result]) -> dict[str, str]:
    """A row of the table."""
    gain = ladder.gain(each, ladder.measured(every).get(each.base))
    return {
        "Rung": BY_NAME[each.rung].title,
        "Epoch": format.precise(each.epoch_seconds),
        "Spread, s": f"{min(each.seconds):.3g} to {max(each.seconds):.3g}",
        "Samples/s": f"{each.samples_per_second:,.0f}",
        "× before": rungs.times(gain.median if gain else None),
        "Accuracy": f"{each.accuracy:.2%}",
        "Memory": format.size(each.peak_bytes),
        "Kept": "yes" if each.kept else "no",
    }


def caption(done: Climbed) -> None:
    """How it was measured, and where the limit comes from."""
    config, limits = done.climb, done.limits
    rates = " and ".join(
        f"{max(median(each.flops_per_second[dtype]) for each in limits) / 1e9:,.0f} "
        f"GFLOP/s in {dtype}"
        for dtype in done.limit.flops_per_second
    )
    bandwidth = max(median(each.bytes_per_second) for each in limits)
    figures.caption(
        f"{format.NAMES[config.model]} on {format.NAMES[config.task]}. Bars are the "
        f"median of n = {config.epochs} epochs after {ladder.FIRST_STEPS} steps that "
        "are not counted, thin lines span least to most; pale rungs were taken back. "
        "× before compares epochs timed in turn with those of the rung that it "
        "changes; the headline is measured last, best rung and textbook loop in turn. "
        "Accuracy after all epochs, on all test images. Peak memory: tensors that "
        "some steps need at once, beyond the model; worker processes not counted. "
        f"Limit: {done.limit.flops_per_image:,.0f} floating-point operations for an "
        f"image, at the {rates} of a large matrix product; memory moves "
        f"{bandwidth / 1e9:,.1f} GB/s in large blocks: the fastest of n = "
        f"{len(limits)} readings, before the climb and at its end.",
        done,
    )
