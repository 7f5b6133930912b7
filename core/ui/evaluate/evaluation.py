"""The answers of a model, as the Evaluate page shows them."""

import time
import uuid
from dataclasses import replace
from statistics import median

import numpy as np
import pandas as pd
import streamlit as st

from core.evaluate.results import Evaluation, ModeCost
from core.jobs.job import Job
from core.jobs.measured import EVALUATE, MODES, keep
from core.ui import figures, format, measured
from core.ui.charts import evaluate as charts
from core.ui.job_panel import JobPanel
from core.ui.runs import Run, run
from core.ui.server import ask, explained, store, visitor

MODES_PANEL = JobPanel(MODES, "The measurement", "compare_modes")
PICTURES = 12
ZOOM = 4  # screen pixels for a pixel of an image


@st.cache_data(max_entries=64, show_spinner=False)
def evaluation(run_id: str, _anew: bool = False) -> Job:
    """The answers of a finished run to the whole test set, as the job that had them.

    A worker is asked once: they are kept for all visitors, and over a restart. Whoever
    wants them anew clears them here before.
    """
    kept = None if _anew else measured.newest(EVALUATE, run_id)
    return kept or _ask(run_id)


def _ask(run_id: str) -> Job:
    finished = run(run_id)
    assert finished is not None
    assert finished.result is not None
    arguments = finished.checkpoint, finished.config
    job = Job(uuid.uuid4().hex, EVALUATE, arguments, "question", visitor(), "finished")
    found = ask(EVALUATE, *arguments, seconds=60)
    now, machine = time.time(), measured.machine()
    job = replace(job, value=found, stopped=now, machine=machine)
    keep(store().measurements, job)
    return job


@st.cache_data(max_entries=256, show_spinner=False)
def pictures(task: str, indices: tuple[int, ...]) -> np.ndarray:
    """Test images, enlarged without blur: uint8 (n, 112, 112)."""
    images = ask("core.evaluate.evaluation:images", task, indices)
    return images.repeat(ZOOM, axis=1).repeat(ZOOM, axis=2)


def accuracy(found: Evaluation) -> None:
    """Test accuracy, its interval, and how many images are classified correctly."""
    low, high = found.interval
    figures.metrics(
        {
            "Test accuracy": f"{found.accuracy:.2%}",
            "95 % interval": f"{low:.1%} – {high:.1%}",
            "Correct": f"{found.correct:,} of {found.total:,}",
        },
        (180, 230, 230),
    )


def gallery(shown: Run, found: Evaluation, indices: list[int]) -> None:
    """The surest of these images, with what they are and what the model says."""
    indices = sorted(indices, key=lambda i: -found.confidences[i])[:PICTURES]
    names = [each.name for each in found.classes]
    images = None
    with explained("The images did not come"):
        images = pictures(shown.config.task, tuple(indices))
    if images is None:
        return
    with st.grid(min_column_width=130):
        for index, image in zip(indices, images, strict=True):
            true = names[found.targets[index]]
            predicted = names[found.predictions[index]]
            said = f"{predicted}, {found.confidences[index]:.1%} sure"
            with st.container(gap="xxsmall"):
                st.image(image, alt=f"Test image {index}: {true}, taken for {said}")
                st.markdown(f"**{true}**  \n:small[{said}]")


def mistakes(shown: Run, found: Evaluation) -> None:
    """The surest of the images that are not what the model says."""
    pairs = zip(found.targets, found.predictions, strict=True)
    wrong = [index for index, (true, said) in enumerate(pairs) if true != said]
    if wrong:
        gallery(shown, found, wrong)
    else:
        st.markdown("There is none: all test images are classified correctly.")


def confusion(shown: Run, found: Evaluation) -> None:
    """The confusion matrix, and the images of the cell that is selected."""
    names = [each.name for each in found.classes]
    event = st.altair_chart(
        charts.confusion(found.confusion, names),
        on_select="rerun",
        key=f"confusion_{shown.id}",
        alt="Confusion matrix: true classes against predicted classes",
    )
    selected = event.selection.get("cell")
    if not selected:
        return
    true, predicted = selected[0]["true"], selected[0]["predicted"]
    pair = (names.index(true), names.index(predicted))
    answers = zip(found.targets, found.predictions, strict=True)
    indices = [index for index, answer in enumerate(answers) if answer == pair]
    count = "1 image" if len(indices) == 1 else f"{len(indices):,} images"
    some = f", the {PICTURES} surest" if len(indices) > PICTURES else ""
    st.markdown(f"**{true}** taken for **{predicted}**: {count}{some}")
    if indices:
        gallery(shown, found, indices)


def class_table(found: Evaluation) -> None:
    """Precision, recall and F1 of each class."""
    meanings = {
        "Precision": "Of the images called so, the share that are so",
        "Recall": "Of the images that are so, the share called so",
        "F1": "Harmonic mean of precision and recall",
    }
    figures.table(
        [
            (each.name, each.precision, each.recall, each.f1, each.images)
            for each in found.classes
        ],
        ["Class", *meanings, "Images"],
        "Precision, recall and F1 of each class",
        column_config={
            column: st.column_config.ProgressColumn(
                column, help=meaning, format="percent", min_value=0, max_value=1
            )
            for column, meaning in meanings.items()
        },
    )


def modes(run: Run) -> None:
    """The button, and what each autograd mode costs on this run's model."""
    wanted = (run.checkpoint, run.config)
    panel = replace(
        MODES_PANEL,
        about=lambda *arguments: arguments == wanted,
        subject=run.id,
    )
    panel.buttons("Measure it", wanted)
    panel.follow(mode_costs)


def mode_costs(job: Job) -> None:
    """Seconds and peak memory in each autograd mode, once they are measured."""
    if job.value is None:
        if not job.ended:
            st.info("Measuring: one warm-up, then five repeats of each, in turn.")
        return
    measured: tuple[ModeCost, ...] = job.value
    environment = measured[0].environment
    table = pd.DataFrame(
        {
            "mode": [each.mode for each in measured],
            "milliseconds": [median(each.seconds) * 1e3 for each in measured],
            "low": [min(each.seconds) * 1e3 for each in measured],
            "high": [max(each.seconds) * 1e3 for each in measured],
            "megabytes": [(each.peak_bytes or 0) / 1e6 for each in measured],
        }
    )
    left, right = st.columns(2)
    with left:
        st.markdown("**Milliseconds**, median")
        st.altair_chart(
            charts.mode_costs(table, "milliseconds", environment.backend),
            alt="Milliseconds in each autograd mode",
        )
    with right:
        st.markdown("**Peak memory** of tensors, megabytes")
        if measured[0].peak_bytes is None:
            st.markdown(f"{environment.backend} does not tell.")
        else:
            st.altair_chart(
                charts.mode_costs(table, "megabytes", environment.backend),
                alt="Peak memory in each autograd mode, in megabytes",
            )
    st.caption(
        f"{measured[0].images:,} test images in batches of 1,000; the thin line spans "
        f"the least and the most of n = {len(measured[0].seconds)} repeats after one "
        f"warm-up. {format.provenance(environment)}."
    )
