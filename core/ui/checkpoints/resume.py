"""Training through beside resuming, and what is lost with the weights alone."""

from dataclasses import replace
from math import ceil

import pandas as pd
import streamlit as st

from core.checkpoints.results import RESUME_IMAGES, PartLosses, Resumed
from core.config import RunConfig
from core.jobs.job import Job
from core.ui import controls, figures, format
from core.ui.charts import checkpoints as charts
from core.ui.job_panel import JobPanel, reported
from core.ui.runs import Run
from core.ui.server import engine

PANEL = JobPanel(
    "core.checkpoints.resume:compare",
    "The comparison",
    "resume",
    icon=":material/resume:",
    cancelled="Cancelled. What was trained until then stays here.",
)


def draw(run: Run) -> None:
    """The comparison of training through with resuming, live."""
    wanted = replace(run.config, feed="memory", num_workers=0, pin_memory=False)

    def about(config: RunConfig) -> bool:
        return replace(config, epochs=wanted.epochs) == wanted

    panel = replace(PANEL, about=about)
    with controls.row():
        half = controls.number(
            "Epochs before and after",
            "resume_epochs",
            1 if run.config.model == "cnn" else 2,
            1,
            min_value=1,
            max_value=5,
            width=220,
        )
        panel.start_button("Train and resume", (replace(wanted, epochs=2 * half),))
        panel.cancel_button()
    st.markdown(
        f":small[With this run's settings, on {RESUME_IMAGES:,} training images.]"
    )
    panel.follow(result)


def result(job: Job) -> None:
    """The three curves as far as they are trained, and how far they are apart."""
    config: RunConfig = job.arguments[0]
    per_epoch = ceil(RESUME_IMAGES / config.batch_size)
    steps, half = per_epoch * config.epochs, per_epoch * config.epochs // 2
    reports = reported(job, PartLosses)
    rows = [
        (charts.PARTS[each.part], step, loss)
        for each in reports
        for step, loss in each.losses
    ]
    found: Resumed | None = job.value
    if found is not None:
        _in_words(found)
    elif not job.ended:
        part = charts.PARTS[reports[-1].part] if reports else "The first step"
        st.progress(min(1.0, len(rows) / (2.5 * steps)), part)
    machine = engine().machine()
    backend = machine.devices[0].backend if machine else "CPU"
    if found is not None:
        backend = found.environment.backend
    st.vega_lite_chart(
        pd.DataFrame(rows, columns=["part", "step", "loss"]),
        charts.resumed(backend, steps, half),
        key="chart_resumed",
        alt="Loss over steps: trained through, resumed, and with only the weights",
    )
    if found is not None:
        figures.caption(
            f"{found.epochs} epochs of {RESUME_IMAGES:,} images, interrupted at step "
            f"{found.at_step:,}.",
            found,
        )


def _in_words(found: Resumed) -> None:
    figures.metrics(
        {
            "Greatest difference": f"{found.greatest_loss_difference:.3g}",
            "Weights that differ": f"{found.differing_weights:,} of {found.weights:,}",
            "With the weights alone": f"{found.weights_only_difference:.3g}",
        },
        {
            "Greatest difference": "Of the losses, trained through against resumed, "
            "over all steps.",
            "With the weights alone": "Greatest difference of the losses after loading "
            "only the weights.",
        },
    )
    contents, size = ", ".join(found.contents), format.size(found.bytes)
    if found.greatest_loss_difference == 0 and found.differing_weights == 0:
        st.success(
            "**Resumed as if it had never stopped**: the same curve and the same "
            f"weights, bit for bit. In the file ({size}): {contents}.",
            icon=":material/check_circle:",
        )
    else:
        st.info(
            "Resumed along nearly the same curve. Some kernels on this device add in "
            "an order that changes from run to run, so even two uninterrupted runs "
            f"differ. In the file ({size}): {contents}.",
            icon=":material/info:",
        )
