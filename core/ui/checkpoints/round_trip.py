"""The round trip of a run's model: saved on one device, loaded on another."""

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from core.checkpoints.results import RoundTrip
from core.jobs.job import Job
from core.ui import controls, figures, format
from core.ui.job_panel import JobPanel, slot
from core.ui.runs import Run

PANEL = JobPanel(
    "core.checkpoints.round_trip:measure",
    "The comparison",
    "round_trip",
    icon=":material/compare_arrows:",
)
ON_ONE_DEVICE = (
    "This machine has only a CPU, so both ends are the CPU; with float32 in the file, "
    "the difference must be exactly 0. With an accelerator you can choose another "
    "device for each end."
)


def draw(run: Run, devices: Sequence[str]) -> None:
    """The controls of the round trip, and what it showed."""
    model = (run.checkpoint, run.config)
    panel = replace(PANEL, about=lambda *arguments: arguments[:2] == model)
    with controls.row():
        ends = [
            controls.choice(label, key, options, width=170)
            for label, key, options in (
                ("Saved on", "save_on", devices),
                ("Loaded on", "load_on", devices[::-1]),
                ("Numbers in the file", "file_dtype", ["float32", "float16"]),
            )
        ]
        panel.buttons("Save, load, compare", (*model, *ends))
    panel.follow(result)


def result(job: Job) -> None:
    """How far the answers of both models are apart."""
    if job.value is None:
        if not job.ended:
            slot("Saving, loading, and answering all test images twice.")
        return
    found: RoundTrip = job.value
    figures.metrics(
        {
            "Greatest difference": f"{found.greatest_difference:.3g}",
            "Logits that differ": f"{found.differing_values:,} of {found.values:,}",
            "Predictions that differ": f"{found.differing_predictions:,} of "
            f"{found.images:,}",
        },
    )
    way = f"{found.saved_on} → file of {found.dtype} → {found.loaded_on}"
    if found.differing_values == 0:
        st.success(
            f"{way}: **the same model.** All {found.values:,} logits are equal, bit "
            "for bit.",
            icon=":material/check_circle:",
        )
    elif found.dtype == "float16":
        st.info(
            f"{way}: a float16 has 11 significant bits, a float32 24. The file is half "
            "as large, and the model is nearly, not exactly, the one that was saved.",
            icon=":material/info:",
        )
    else:
        st.info(
            f"{way}: the weights are equal; two devices add the same numbers in a "
            "different order, and floats round at every sum. On NVIDIA GPUs "
            "convolutions may also round to TF32.",
            icon=":material/info:",
        )
    figures.caption(
        f"{format.size(found.bytes)} in the file. Compared on the host.", found
    )
