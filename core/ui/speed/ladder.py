"""The ladder as the Speed page shows it: its controls, and the climb at a glance."""

from collections.abc import Sequence
from itertools import pairwise, takewhile
from typing import Any

import pandas as pd
import streamlit as st

from core.jobs.job import Job
from core.measure.environment import Machine
from core.speed import headline, ladder
from core.speed.headline import Climbed, DirectProgress
from core.speed.ladder import BY_NAME, RUNGS, Climb, Progress, Result
from core.speed.results import Roofline
from core.ui import answers, controls, downloads, figures, format, job_panel, measured
from core.ui.charts import speed as charts
from core.ui.compare import records
from core.ui.job_panel import JobPanel, latest, reported
from core.ui.speed import rungs

PANEL = JobPanel(
    "core.speed.climb:climb",
    "The climb",
    "ladder",
    icon=":material/stairs:",
)
SHARES = [6, 4]  # of the rungs and of the one that is looked at
DRIFTED = (
    "The machine's speed changed during the climb: something else was probably "
    "running. Bars of different moments can't be compared, only each rung with the "
    "one before, since their epochs were timed in turn. Climb again when it's quiet."
)
NO_HEADLINE = (
    "The best rung is compared with the textbook loop at the end of a climb: a climb "
    "that ended early has no such figure."
)

TF32 = (
    " Its float32 is not TF32. Convolutions on NVIDIA GPUs may round to TF32, which is "
    "faster, so a rung in 32 bits may pass the limit."
)


def draw(machine: Machine, has_data: bool) -> None:
    """The controls, the climb, the rungs one by one; then what was recorded."""
    wanted, row, below = None, controls.row(), st.container()
    with row:
        with controls.startable(below):
            wanted = settings(machine, has_data)
        buttons(wanted)
    follow(wanted, machine)
    for label, done in records.of(records.recordings(), "climbs"):
        with st.expander(f"Recorded: {label} · {format.NAMES[done.climb.model]}"):
            st.markdown(headline.verdict(done))
            table(done.results, done.results)
            caption(done)


def settings(machine: Machine, has_data: bool) -> Climb:
    """What the learner wants to climb with; ValueError where it can't be."""
    devices = [each.device for each in machine.devices]
    task = controls.task("ladder_task", has_data, width=148)
    model = controls.model("ladder_model", width=96)
    device = controls.choice("Device", "ladder_device", devices, "device", width=96)
    epochs, images = ladder.DEFAULTS[model]
    with st.popover("More", icon=":material/tune:"):
        epochs = controls.number(
            "Epochs per rung",
            f"ladder_epochs_{model}",
            epochs,
            1,
            "epochs",
            persist_state="session",
            help="Each one is timed by itself, in turn with one of the rung before. "
            "How far apart they are says how certain the result is. With more epochs, "
            "the model also learns more.",
        )
        images = controls.number(
            "Images per epoch",
            f"ladder_images_{model}",
            images,
            1000,
            "images",
            persist_state="session",
            help="The first images of the training set. Fewer are quicker, but "
            "the model learns less.",
        )
    return Climb(task, model, device, epochs, images)


def results(job: Job) -> tuple[Result, ...]:
    """What is measured so far, by this climb and by those that it resumed."""
    if isinstance(job.value, Climbed):
        return job.value.results
    return (*job.arguments[1], *reported(job, Result))


def buttons(wanted: Climb | None) -> None:
    """Start, or cancel; where a climb ended early, resume."""
    if PANEL.going_on:
        PANEL.cancel_button()
        return
    job = PANEL.job
    done = results(job) if job and job.arguments[0] == wanted else ()
    anew = None if wanted is None else (wanted, ())
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


def follow(wanted: Climb | None, machine: Machine) -> None:
    """The climb, live: the rungs, and beside them the one that is looked at."""
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

    if job is not None:
        if mine is None:
            measured.tell(job)
        job_panel.follow(job, PANEL.what, draw, "climb")
    if job is None or waits:
        unclimbed(backend, chosen.model if chosen else "ann")


@st.fragment
def unclimbed(backend: str, model: str) -> None:
    """The rungs before there is a climb: each may be guessed already."""
    left, right = st.columns(SHARES)
    with right:  # first, since it is there sooner
        rungs.draw(False, (), backend, model)
    with left:
        rungs.rows((), (), backend, model)


def climb(job: Job, backend: str) -> None:
    """What is known of a climb: its rungs, the one that is chosen, what all brought."""
    found = results(job)
    limits = job.value.limits if job.value else reported(job, Roofline)
    model = job.arguments[0].model
    shown = [each for each in found if rungs.is_revealed(each)]
    left, right = st.columns(SHARES)
    with right:
        _status(job)
        rungs.draw(True, found, backend, model)
    with left:
        rungs.rows(found, limits, backend, model)
        answers.toggle("Just show me all of them", rungs.SHOW_ALL)
        if any(each.measured for each in shown):
            st.caption(
                "Median samples/s and seconds per epoch, n = "
                f"{job.arguments[0].epochs}; lines: least to most. Hollow: dropped. "
                "Dashed: this machine's limit at the rung's precision."
            )
            fall(shown, found, backend)
    with st.expander("All figures", icon=":material/table:"):
        table(shown, found)
        if job.value is not None:
            caption(job.value)
            if len(shown) == len(found):  # files would tell what is to be guessed
                downloads.both("ladder", job.value.rows())


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
            f"The climb is done. {format.counted(len(hidden), 'result')} "
            f"{'is' if len(hidden) == 1 else 'are'} waiting for your guess.",
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


def fall(shown: Sequence[Result], every: Sequence[Result], backend: str) -> None:
    """The seconds that each rung takes off an epoch, down to the first hidden one."""
    steps = kept_in_a_row(shown, every)
    if len(steps) < 2:
        return
    known = ladder.measured(every)
    if any(ladder.drift(each, known.get(each.base)) for each in shown):
        st.warning(DRIFTED, icon=":material/speed:")
        return
    seconds = [each.epoch_seconds for each in steps]
    off = [a - b for a, b in pairwise(seconds)]
    most = max(range(len(off)), key=off.__getitem__)
    title = BY_NAME[steps[most + 1].rung].title
    st.markdown(
        f"**{title} saves the most: {off[most]:.2f} s of the {seconds[0]:.2f} s that "
        "an epoch took**"
    )
    taken = [
        (BY_NAME[each.rung].title, *sorted(ends), _change(*ends), False)
        for each, ends in zip(steps[1:], pairwise(seconds), strict=True)
    ]
    bars = [
        (BY_NAME[steps[0].rung].title, 0.0, seconds[0], f"{seconds[0]:.2f} s", True),
        *taken,
        ("What is left", 0.0, seconds[-1], f"{seconds[-1]:.2f} s", True),
    ]
    columns = ["rung", "left", "before", "label", "whole"]
    st.altair_chart(
        charts.waterfall(pd.DataFrame(bars, columns=columns), backend),
        alt="Seconds that each rung takes off an epoch",
    )


def _change(before: float, after: float) -> str:
    return f"{after - before:+.2f} s".replace("-", "−")


def kept_in_a_row(shown: Sequence[Result], every: Sequence[Result]) -> list[Result]:
    """Those that were kept, from the textbook to the first that is not shown yet."""
    until = takewhile(lambda each: each in shown, every)
    return [each for each in until if each.measured and each.kept]


def table(found: Sequence[Result], every: Sequence[Result]) -> None:
    """All figures of some rungs; `every` holds what they are compared with."""
    formats = {
        **dict.fromkeys(("Epoch, s", "Least, s", "Most, s"), "%.2f"),
        **{"Samples/s": "%,d", "Accuracy, %": "%.2f", "Memory, MB": "%.1f"},
        "Than before": "%.2f×",
    }
    figures.table(
        (_figures(each, every) for each in found if each.measured),
        alt="Seconds, speed-ups, test accuracy and peak memory of each rung",
        column_config={
            name: st.column_config.NumberColumn(format=each)
            for name, each in formats.items()
        },
    )


def _figures(each: Result, every: Sequence[Result]) -> dict[str, Any]:
    """A row of the table."""
    gain = ladder.gain(each, ladder.measured(every).get(each.base))
    return {
        "Rung": BY_NAME[each.rung].title,
        "Epoch, s": each.epoch_seconds,
        "Than before": gain.median if gain else None,
        "Samples/s": round(each.samples_per_second),
        "Accuracy, %": 100 * each.accuracy,
        "Memory, MB": None if each.peak_bytes is None else each.peak_bytes / 1e6,
        "Least, s": min(each.seconds),
        "Most, s": max(each.seconds),
        "Kept": each.kept,
    }


def caption(done: Climbed) -> None:
    """How it was measured, and where the limit comes from."""
    config, limits, backend = done.climb, done.limits, done.environment.backend
    rates = " and ".join(
        f"{max(max(each.flops_per_second[dtype]) for each in limits) / 1e9:,.0f} "
        f"GFLOP/s in {dtype}"
        for dtype in done.limit.flops_per_second
    )
    bandwidth = max(max(each.bytes_per_second) for each in limits)
    with st.popover("How it was measured", icon=":material/timer:"):
        figures.bullets(
            (
                f"{format.NAMES[config.model]} on {format.NAMES[config.task]}: the "
                f"median of n = {config.epochs} epochs after {ladder.FIRST_STEPS} "
                "steps that are not counted.",
                "“Than before” compares epochs timed in turn with those of the rung "
                "that it changes; the headline is measured last, best rung and "
                "textbook loop in turn.",
                "Accuracy after all epochs, on all test images. Memory: tensors that "
                "some steps need at once, beyond the model; worker processes not "
                "counted.",
                f"Limit: {done.limit.flops_per_image:,.0f} floating-point operations "
                f"for an image, at the {rates} of a large matrix product; memory moves "
                f"{bandwidth / 1e9:,.1f} GB/s in large blocks. The fastest of n = "
                f"{len(limits)} readings, before the climb and at its end."
                + (TF32 if (config.model, backend) == ("cnn", "CUDA") else ""),
            )
        )
        figures.caption("", done)
