"""The upload of a checkpoint: a worker opens the file, the page shows what is in it.

The web server passes the bytes on without reading them.
"""

from typing import Any

import streamlit as st

from core.config import IMAGE_MODELS, IMAGE_TASKS, RunConfig
from core.lessons.checkpoints.checkpoints_result import Opened
from core.lessons.checkpoints.download_page import table, tensor_table
from core.lessons.evaluate import evaluation_page as evaluation
from core.lessons.evaluate.evaluate_result import Evaluation
from core.lessons.mistakes import catalogue_page as mistakes
from core.lessons.mistakes.catalogue import BY_SLUG
from core.measure.environment import Machine
from core.ui import dataset, figures, format
from core.ui.controls import choice
from core.ui.server import ask, explained
from core.ui.source import show
from to_device.errors import ExplainedError
from to_device.words import Words

words = Words(__file__)

MAX_MEGABYTES = 20
SUGGESTED = "As the file suggests"
MISTAKES = ("pickle_refused", "cuda_checkpoint", "wrong_architecture")


def draw(machine: Machine | None, task: str | None) -> None:
    st.markdown(words("load.text"))
    file = st.file_uploader(
        "A checkpoint from this app, or from any model with the same layers",
        key="upload_checkpoint",
        max_upload_size=MAX_MEGABYTES,
        help=words("load.help"),
    )
    task = task or (RunConfig.task if dataset.is_here(machine) else "sprites")
    devices = [device.device for device in machine.devices] if machine else ["cpu"]
    with st.container(horizontal=True):
        model = choice(
            "Architecture", "upload_model", [SUGGESTED, *IMAGE_MODELS], width=220
        )
        at = IMAGE_TASKS.index(task)
        task = choice("Test images", "upload_task", IMAGE_TASKS, index=at, width=180)
        device = choice("Device", "upload_device", devices, width=140)
    if file is None:
        st.markdown(
            ":material/upload_file: No file yet? Download one from the "
            "first tab and upload it here."
        )
    else:
        opened = _open(file, None if model == SUGGESTED else model)
        if isinstance(opened, str):
            st.error(opened, title="The file was not opened", icon=":material/block:")
        else:
            _contents(opened)
            if opened.checkpoint is not None:
                _evaluate(file.file_id, opened, task, device)
    st.markdown(words("load.code"))
    show("core.lessons.checkpoints.round_trip:read", "core.state_dict:load")


def _open(file: Any, model: str | None) -> Opened | str:
    """The file's contents, or the error as text.

    A worker opens the file once; when the page is drawn again, the result is reused.
    """
    results = st.session_state.setdefault("opened_uploads", {})
    key = (file.file_id, model)
    if key not in results:
        results.clear()
        address = "core.lessons.checkpoints.upload:open_safely"
        arguments = (file.getvalue(), file.name, model)
        with st.spinner("Opening the file in a separate process"):
            try:
                results[key] = ask(address, *arguments, seconds=60, lane="upload")
            except ExplainedError as error:
                results[key] = str(error)
    return results[key]


def _contents(opened: Opened) -> None:
    name = format.NAMES[opened.model]
    if opened.checkpoint is not None:
        st.success(
            f"**The file fits the {name}.** {len(opened.tensors)} tensors, "
            f"saved as {opened.format}.",
            icon=":material/check_circle:",
        )
    else:
        counts = {
            "missing": len(opened.missing),
            "unexpected": len(opened.unexpected),
            "of the wrong shape or type": len(opened.misshapen),
        }
        texts = (f"{count} {kind}" for kind, count in counts.items() if count)
        st.error(
            (
                "The tensors don't match: {counts}. Choose another "
                "architecture, or save the state_dict of a model with these "
                "layers."
            ).format(counts=", ".join(texts)),
            title=f"The file does not fit the {name}",
            icon=":material/error:",
        )
    notes = opened.notes
    if opened.renamed:
        notes += (words("load.renamed"),)
    for note in notes:
        st.markdown(f"- {note}")
    tables = {
        "In the file → in the model": [" → ".join(names) for names in opened.renamed],
        "Missing: in the model, but not in the file": opened.missing,
        "Unexpected: in the file, but not in the model": opened.unexpected,
        "Wrong shape or type: only the name is right": [
            f"{name}: {theirs} in the file, {ours} in the model"
            for name, theirs, ours in opened.misshapen
        ],
    }
    for title, rows in tables.items():
        if rows:
            # A table, not Markdown: names in a stranger's file could contain links
            table([(row,) for row in rows], [title], title)
    with st.expander("What is in the file"):
        tensor_table(opened.tensors)


def _evaluate(file_id: str, opened: Opened, task: str, device: str) -> None:
    evaluations = st.session_state.setdefault("upload_evaluations", {})
    key = (file_id, opened.model, task, device)
    icon = ":material/fact_check:"
    with explained("The evaluation failed"):
        if st.button("Evaluate", key="evaluate_upload", type="primary", icon=icon):
            with st.spinner("The model is classifying the test images"):
                evaluations.clear()  # each takes half a megabyte of the server's memory
                evaluations[key] = ask(
                    "core.lessons.evaluate.evaluation:evaluate",
                    opened.checkpoint,
                    RunConfig(task=task, model=opened.model),
                    device,
                    seconds=60,
                )
        if key in evaluations:
            result: Evaluation = evaluations[key]
            evaluation.accuracy(result)
            figures.caption("On all the test images.", result)


def wrong() -> None:
    st.markdown(words("wrong.text"))
    slug = st.segmented_control(
        "Mistake",
        MISTAKES,
        format_func=lambda slug: BY_SLUG[slug].title,
        default=MISTAKES[0],
        required=True,
        key="file_mistake",
        label_visibility="collapsed",
    )
    mistakes.card(BY_SLUG[slug or MISTAKES[0]], opened=True)
    st.markdown(words("wrong.prefix"))
