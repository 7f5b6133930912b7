"""The round trip of a run's model: saved on one device, loaded on another."""

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from core.jobs.job import Job
from core.lessons.checkpoints.checkpoints_result import RoundTrip
from core.runs import finished_run_page as finished_run
from core.ui import controls, figures, format
from core.ui.job_panel import JobPanel, slot
from core.ui.runs import Run
from core.ui.source import show
from core.words import Words

words = Words(__file__)

PANEL = JobPanel(
    "core.lessons.checkpoints.round_trip:measure",
    "The comparison",
    "round_trip",
    icon=":material/compare_arrows:",
)


def draw(run: Run | None, devices: Sequence[str]) -> None:
    """The controls of the round trip, and what it showed."""
    st.subheader(words("round_trip.heading"))
    st.markdown(words("round_trip.text"))
    if len(devices) == 1:
        st.markdown(words("round_trip.on_one_device"))
    if run is None:
        finished_run.nothing_yet()
    else:
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
    show("core.lessons.checkpoints.round_trip:measure")


def result(job: Job) -> None:
    """How far the answers of both models are apart."""
    trip: RoundTrip | None = job.value
    if trip is None:
        if not job.ended:
            slot("Saving, loading, and answering all test images twice.")
        return
    figures.metrics(
        {
            "Greatest difference": f"{trip.greatest_difference:.3g}",
            "Logits that differ": f"{trip.differing_values:,} of {trip.values:,}",
            "Predictions that differ": f"{trip.differing_predictions:,} of "
            f"{trip.images:,}",
        },
    )
    way = f"{trip.saved_on} → file of {trip.dtype} → {trip.loaded_on}"
    if trip.differing_values == 0:
        st.success(
            f"{way}: **the same model.** All {trip.values:,} logits are equal, bit "
            "for bit.",
            icon=":material/check_circle:",
        )
    else:
        text = words("round_trip.two_devices", way=way)
        if trip.dtype == "float16":
            text = words("round_trip.float16", way=way)
        st.info(text, icon=":material/info:")
    figures.caption(
        f"{format.size(trip.bytes)} in the file. Compared on the host.", trip
    )
