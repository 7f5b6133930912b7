"""Check that a checkpoint is complete: load a model again, and resume a training."""

from collections.abc import Sequence
from dataclasses import replace
from math import ceil

import altair as alt
import pandas as pd
import streamlit as st

from core.config import RunConfig
from core.jobs.job import Job
from core.lessons.checkpoints.checkpoints_result import (
    RESUME_IMAGES,
    PartLosses,
    Resumed,
    RoundTrip,
)
from core.runs import finished_run_page as finished_run
from core.ui import charts, controls, figures, format, simulated
from core.ui.charts import LATER, LINES, Chart, Palette
from core.ui.job_panel import JobPanel, reported, slot
from core.ui.runs import Run
from core.ui.server import ask_once, engine, explained
from core.ui.source import show
from to_device.names import SIMULATED
from to_device.words import Words

words = Words(__file__)

PARTS = {
    "through": "Without a break",
    "resumed": "Saved, loaded, and resumed",
    "weights": "Only the weights loaded",
}


def draw(run: Run | None, devices: Sequence[str]) -> None:
    st.header("Is it the same model?")
    st.markdown(words("round_trip.text"))
    if len(devices) == 1:
        st.markdown(words("round_trip.on_one_device"))
    if run is None:
        finished_run.nothing_yet()
    else:
        _save_and_load(run, devices)
    if len(devices) > 1:
        _elsewhere(devices[0])
    with st.expander(
        "Going further: does training continue as before?",
        icon=":material/resume:",
        key="further",
    ):
        st.markdown(words("resume.text"))
        if run is None:
            finished_run.nothing_yet()
        else:
            _train_and_resume(run.config)


def _save_and_load(run: Run, devices: Sequence[str]) -> None:
    model = (run.checkpoint, run.config)
    panel = JobPanel(
        "core.lessons.checkpoints.round_trip:measure",
        "The comparison",
        "round_trip",
        icon=":material/compare_arrows:",
        about=lambda *arguments: arguments[:2] == model,
    )
    with controls.row():
        settings = [
            controls.choice(label, key, options, width=220)
            for label, key, options in (
                ("Saved on", "save_on", devices),
                ("Loaded on", "load_on", devices[::-1]),
                ("Numbers in the file", "file_dtype", ["float32", "float16"]),
            )
        ]
        panel.buttons("Save, load, compare", (*model, *settings))
    panel.follow(_draw_trip)


def _elsewhere(device: str) -> None:
    """Show how a file from the device loads in a process without the device."""
    st.header("When the device is missing")
    outline = simulated.outline("elsewhere", explained=True, device=device)
    with outline, explained("The file was not loaded"):
        st.markdown(
            "A file records each tensor's device. We saved this file on "
            f"`{device}`, and we load it in a process that has no such "
            "device."
        )
        round_trip = "core.lessons.checkpoints.round_trip"
        outcomes: dict[str, str] = ask_once(f"{round_trip}:load_elsewhere", device)
        for name, outcome in outcomes.items():
            code, answer = st.columns([3, 2])
            with code:
                show(f"{round_trip}:{name}")
            with answer:
                if "Error" not in outcome:
                    st.success(f"Loading works: the tensors are on `{outcome}`.")
                    continue
                st.markdown("Loading fails:")
                st.code(outcome, language=None, wrap_lines=True)
                if device == SIMULATED:
                    st.caption(
                        "Without a GPU, loading a file from an NVIDIA GPU fails with "
                        "this message:"
                    )
                    st.code(words("elsewhere.cuda"), language=None, wrap_lines=True)


def _draw_trip(job: Job) -> None:
    trip: RoundTrip | None = job.value
    if trip is None:
        if not job.ended:
            slot("Saving and loading the model, and classifying the test images twice.")
        return
    way = f"{trip.saved_on} → {trip.dtype} file → {trip.loaded_on}"
    predictions = f"{trip.differing_predictions:,} of {trip.images:,}"
    device = SIMULATED if SIMULATED in job.arguments else ""
    with simulated.outline("trip", device=device):
        figures.metrics(
            {
                "Greatest difference": f"{trip.greatest_difference:.3g}",
                "Logits that differ": f"{trip.differing_values:,} of {trip.values:,}",
                "Predictions that differ": predictions,
            }
        )
        if trip.differing_values == 0:
            text = (
                "{way}: **the same model.** All {values} logits are equal, bit for bit."
            ).format(way=way, values=f"{trip.values:,}")
            st.success(text, icon=":material/check_circle:")
        else:
            text = (
                f"{way}: the weights are equal, but two devices add the same "
                "numbers in different orders, and every sum is rounded. On "
                "NVIDIA GPUs, convolutions may also round to TF32."
            )
            if trip.dtype == "float16":
                text = (
                    f"{way}: a float16 has 11 significant bits, while a float32 "
                    "has 24. The file is half as large, but the loaded model "
                    "isn't exactly the same."
                )
            st.info(text, icon=":material/info:")
        size = format.size(trip.bytes)
        text = f"The file is {size}. We compared the logits on the host."
        figures.caption(text, trip)


def _train_and_resume(config: RunConfig) -> None:
    config = replace(config, feed="memory", num_workers=0, pin_memory=False)
    panel = JobPanel(
        "core.lessons.checkpoints.resume:compare",
        "The comparison",
        "resume",
        icon=":material/resume:",
        about=lambda resumed: replace(resumed, epochs=config.epochs) == config,
        cancelled="Canceled. The curves so far are still here.",
    )
    with controls.row():
        half = controls.number(
            "Epochs before and after",
            "resume_epochs",
            1 if config.model == "cnn" else 2,
            1,
            min_value=1.0,
            max_value=5.0,
            width=220,
        )
        panel.start_button("Train and resume", (replace(config, epochs=2 * half),))
        panel.cancel_button()
    st.markdown(
        (":small[We use this run's settings and {images} training images.]").format(
            images=f"{RESUME_IMAGES:,}"
        )
    )
    panel.follow(_draw_resumed)


def _draw_resumed(job: Job) -> None:
    config: RunConfig = job.arguments[0]
    steps = ceil(RESUME_IMAGES / config.batch_size) * config.epochs
    reports = reported(job, PartLosses)
    rows = [
        (PARTS[report.part], step, loss)
        for report in reports
        for step, loss in report.losses
    ]
    resumed: Resumed | None = job.value
    machine = engine().machine()
    backend = machine.devices[0].backend if machine else "CPU"
    if resumed is not None:
        backend = resumed.environment.backend
    with simulated.outline("resumed", device=config.device):
        if resumed is not None:
            differing = f"{resumed.differing_weights:,} of {resumed.weights:,}"
            figures.metrics(
                {
                    "Greatest difference": f"{resumed.greatest_loss_difference:.3g}",
                    "Weights that differ": differing,
                    "With the weights alone": f"{resumed.weights_only_difference:.3g}",
                },
                words.table("resume.notes"),
            )
            contents, size = ", ".join(resumed.contents), format.size(resumed.bytes)
            if resumed.greatest_loss_difference == 0 and resumed.differing_weights == 0:
                text = (
                    "**The resumed run is exactly the same as the uninterrupted "
                    "run**: the same curve and the same weights, bit for bit. "
                    f"The {size} file contains these entries: {contents}."
                )
                st.success(text, icon=":material/check_circle:")
            else:
                text = words("resume.nearly", size=size, contents=contents)
                st.info(text, icon=":material/info:")
        elif not job.ended:
            part = PARTS[reports[-1].part] if reports else "The first step"
            st.progress(min(1.0, len(rows) / (2.5 * steps)), part)
        st.vega_lite_chart(
            pd.DataFrame(rows, columns=["part", "step", "loss"]),
            curves(backend, steps, steps // 2),
            key="chart_resumed",
            alt="Training loss: uninterrupted, resumed, and resumed with only the "
            "weights",
        )
        if resumed is not None:
            text = f"{resumed.epochs} epochs of {RESUME_IMAGES:,} images, "
            text += f"interrupted at step {resumed.at_step:,}."
            figures.caption(text, resumed)


@charts.live
def curves(colors: Palette, backend: str, steps: int, at_step: int) -> Chart:
    """Loss curves from the columns part, step and loss.

    A vertical line marks `at_step`, at which the training was interrupted.
    """
    hues = (colors.of(backend), colors.text, colors.further[0])
    step = alt.X("step:Q").title("Step").scale(domain=[0, steps], nice=False)
    chart = alt.Chart(LATER).encode(
        x=step.axis(tickCount=8),
        y=alt.Y("loss:Q").title("Loss").scale(zero=False),
        color=charts.hues("part", PARTS.values(), hues, columns=2, **LINES),
        tooltip=charts.tips(part="Training")
        + charts.tips(",d", step="Step")
        + charts.tips(".6f", loss="Loss"),
    )
    through, again, weights = (
        chart.transform_filter(alt.datum.part == part) for part in PARTS.values()
    )
    middle = alt.Chart(alt.Data(values=[{"step": at_step}])).encode(x="step:Q")
    label = middle.mark_text(
        text="saved, loaded", align="left", dx=6, dy=6, baseline="top", fontSize=11
    )
    return alt.layer(
        middle.mark_rule(color=colors.quiet, strokeDash=[4, 4]),
        charts.lines(through, 6, opacity=0.45),
        charts.lines(weights, 1.4, opacity=0.9),
        charts.lines(again, 1.2),
        label.encode(y=alt.value(0), color=alt.value(colors.quiet)),
    ).properties(height=300)
