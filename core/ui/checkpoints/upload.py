"""A checkpoint that a visitor uploads: opened by the lab worker, shown, evaluated.

The web server hands its bytes on and looks at none of them.
"""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from core.checkpoints.results import Opened, TensorInfo
from core.config import IMAGE_MODELS, IMAGE_TASKS, RunConfig
from core.errors import ExplainedError
from core.evaluate.results import Evaluation
from core.measure.environment import Machine
from core.ui import dataset, figures, format
from core.ui.controls import choice
from core.ui.evaluate import evaluation
from core.ui.server import ask, explained

MAX_MEGABYTES = 20
SUGGESTED = "As the file suggests"


def draw(machine: Machine | None, task: str | None) -> None:
    """The uploader, what was found in the file, and its accuracy on a task's images."""
    file = st.file_uploader(
        f"A checkpoint of up to {MAX_MEGABYTES} MB: one you saved here, or anyone's "
        "with the same layers",
        key="upload_checkpoint",
        max_upload_size=MAX_MEGABYTES,
        help="A state_dict as torch.save or safetensors writes it, bare or inside a "
        "dictionary under state_dict, model_state_dict or model.",
    )
    task = task or (RunConfig.task if dataset.is_here(machine) else "sprites")
    devices = [each.device for each in machine.devices] if machine else ["cpu"]
    with st.container(horizontal=True):
        model = choice(
            "Architecture", "upload_model", [SUGGESTED, *IMAGE_MODELS], width=220
        )
        at = IMAGE_TASKS.index(task)
        task = choice("Test images", "upload_task", IMAGE_TASKS, index=at, width=180)
        device = choice("Device", "upload_device", devices, width=140)
    if file is None:
        st.markdown(
            ":material/upload_file: No file yet? Download one on the first tab and try "
            "it."
        )
        return
    found = _open(file, None if model == SUGGESTED else model)
    if isinstance(found, str):
        st.error(found, title="The file was not opened", icon=":material/block:")
        return
    _contents(found)
    if found.checkpoint is not None:
        _evaluate(file.file_id, found, task, device)


def _open(file: Any, model: str | None) -> Opened | str:
    """What is in the file, or why not; asked of the worker once."""
    opened = st.session_state.setdefault("opened_uploads", {})
    key = (file.file_id, model)
    if key not in opened:
        opened.clear()
        path, content = "core.checkpoints.upload:open_safely", file.getvalue()
        with st.spinner("Opening the file in a process of its own"):
            try:
                opened[key] = ask(
                    path, content, file.name, model, seconds=60, lane="upload"
                )
            except ExplainedError as error:
                opened[key] = str(error)
    return opened[key]


def _contents(found: Opened) -> None:
    name = format.NAMES[found.model]
    if found.checkpoint is not None:
        st.success(
            f"**It fits the {name}.** {len(found.tensors)} tensors, {found.format}.",
            icon=":material/check_circle:",
        )
    else:
        lists = ("missing", "unexpected", "misshapen")
        counts = [
            f"{n} {what.replace('misshapen', 'of the wrong shape or type')}"
            for what in lists
            if (n := len(getattr(found, what)))
        ]
        st.error(
            f"Compared by name: {', '.join(counts)}. Choose another architecture, or "
            "save the state_dict of a model with these layers.",
            title=f"It does not fit the {name}",
            icon=":material/error:",
        )
    for note in found.notes:
        st.markdown(f"- {note}")
    if found.renamed:
        st.markdown(
            "- The names differ, but the shapes leave no doubt which is which. A file "
            "doesn't say what happens between the layers: the accuracy will."
        )
    tables = {
        "In the file → in the model": [" → ".join(names) for names in found.renamed],
        "Missing: the model has it, the file does not": found.missing,
        "Unexpected: the file has it, the model does not": found.unexpected,
        "Wrong shape or type: only the name is right": [
            f"{name}: {theirs} in the file, {ours} in the model"
            for name, theirs, ours in found.misshapen
        ],
    }
    for title, rows in tables.items():
        if rows:  # a table of texts, since names from a stranger's file are no Markdown
            _table([(row,) for row in rows], [title], title)
    with st.expander("What is in the file"):
        tensor_table(found.tensors)


def tensor_table(tensors: Sequence[TensorInfo]) -> None:
    """Names, shapes, dtypes, bytes, their share, and devices."""
    whole = sum(each.bytes for each in tensors) or 1
    rows = [
        (
            each.name,
            " × ".join(map(str, each.shape)) or "one number",
            each.dtype,
            each.bytes,
            each.bytes / whole,
            each.device,
        )
        for each in tensors
    ]
    config = st.column_config
    _table(
        rows,
        ["Name", "Shape", "dtype", "Bytes", "Share", "Saved from"],
        "Names, shapes, types, bytes and devices of the tensors",
        column_config={
            "Bytes": config.NumberColumn(format="localized"),
            "Share": config.NumberColumn(format="percent"),
        },
    )


def _table(rows: list[tuple], columns: list[str], alt: str, **more: Any) -> None:
    """At most as high as eight rows; with more it is scrolled."""
    figures.table(rows, columns, alt, height=min(38 + 35 * len(rows), 300), **more)


def _evaluate(file_id: str, found: Opened, task: str, device: str) -> None:
    evaluations = st.session_state.setdefault("upload_evaluations", {})
    key = (file_id, found.model, task, device)
    icon = ":material/fact_check:"
    with explained("The evaluation failed"):
        if st.button("Evaluate", key="evaluate_upload", type="primary", icon=icon):
            with st.spinner("The model is answering all test images"):
                evaluations.clear()  # each is half a megabyte of the server
                evaluations[key] = ask(
                    "core.evaluate.evaluation:evaluate",
                    found.checkpoint,
                    RunConfig(task=task, model=found.model),
                    device,
                    seconds=60,
                )
        if key in evaluations:
            result: Evaluation = evaluations[key]
            evaluation.accuracy(result)
            figures.caption("On all test images.", result)
