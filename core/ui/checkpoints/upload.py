"""A checkpoint that a visitor uploads: opened by the lab worker, shown, evaluated.

The web server hands its bytes on and looks at none of them.
"""

from typing import Any

import pandas as pd
import streamlit as st

from core import config as configs
from core.checkpoints.results import Opened, TensorInfo
from core.config import RunConfig
from core.errors import ExplainedError
from core.measure.environment import Machine
from core.ui import dataset, format
from core.ui.evaluate import evaluation
from core.ui.server import engine

MAX_MEGABYTES = 20
SUGGESTED = "as the file suggests"


def draw(machine: Machine | None, task: str | None) -> None:
    """The uploader, what was found in the file, and its accuracy on a task's images."""
    file = st.file_uploader(
        f"A checkpoint of at most {MAX_MEGABYTES} MB: yours from here, or anybody's "
        "with the same layers",
        key="upload_checkpoint",
        max_upload_size=MAX_MEGABYTES,
        help="A state_dict as torch.save or safetensors writes it, bare or inside a "
        "dictionary under state_dict, model_state_dict or model.",
    )
    task = task or (RunConfig.task if dataset.is_here(machine) else "sprites")
    devices = [each.device for each in machine.devices] if machine else ["cpu"]
    with st.container(horizontal=True):
        model = st.selectbox(
            "Architecture",
            [SUGGESTED, *configs.IMAGE_MODELS],
            format_func=lambda name: format.NAMES.get(name, name.capitalize()),
            key="upload_model",
            width=220,
        )
        task = st.selectbox(
            "Test images",
            configs.IMAGE_TASKS,
            index=configs.IMAGE_TASKS.index(task),
            format_func=format.NAMES.__getitem__,
            key="upload_task",
            width=180,
        )
        device = st.selectbox(
            "Device",
            devices,
            format_func=format.NAMES.__getitem__,
            key="upload_device",
            width=140,
        )
    if file is None:
        st.markdown(
            ":material/upload_file: What is in the file appears here, and whether it "
            "fits. Try the one that you saved on the first tab."
        )
        return
    opened = st.session_state.setdefault("opened_uploads", {})
    key = (file.file_id, model)
    if key not in opened:
        opened.clear()
    found = _asked(
        opened,
        key,
        "A worker opens the file in a process of its own",
        "core.checkpoints.upload:open_safely",
        file.getvalue(),
        file.name,
        None if model == SUGGESTED else model,
    )
    if isinstance(found, str):
        st.error(found, title="The file was not opened", icon=":material/block:")
        return
    _contents(found)
    if found.checkpoint is not None:
        _evaluate(file.file_id, found, task, device)


def _asked(answers: dict, key: tuple, doing: str, path: str, *arguments: Any) -> Any:
    """What the worker answers, or a sentence on why it does not; asked of it once."""
    if key not in answers:
        with st.spinner(doing):
            try:
                answers[key] = engine().ask(path, *arguments, seconds=60)
            except ExplainedError as error:
                answers[key] = str(error)
    return answers[key]


def _contents(found: Opened) -> None:
    name = format.NAMES[found.model]
    if found.checkpoint is not None:
        st.success(
            f"**It fits the {name}.** {len(found.tensors)} tensors, {found.format}.",
            icon=":material/check_circle:",
        )
    else:
        lists = ("missing", "unexpected", "misshapen")
        counts = {what: len(getattr(found, what)) for what in lists}
        differences = ", ".join(f"{n} {what}" for what, n in counts.items() if n)
        st.error(
            f"Compared by name: {differences}. Choose another architecture, or save "
            "the state_dict of a model with these layers.",
            title=f"It does not fit the {name}",
            icon=":material/error:",
        )
    for note in found.notes:
        st.markdown(f"- {note}")
    if found.renamed:
        st.markdown(
            "- The names differ, and the shapes leave no doubt which is which. What "
            "happens between the layers, a file does not say: the accuracy will."
        )
    tables = {
        "In the file → in the model": [" → ".join(names) for names in found.renamed],
        "Missing: the model has it, the file does not": found.missing,
        "Unexpected: the file has it, the model does not": found.unexpected,
        "Misshapen: the name is right, the shape or type is not": [
            f"{name}: {theirs} in the file, {ours} in the model"
            for name, theirs, ours in found.misshapen
        ],
    }
    for title, rows in tables.items():
        if rows:  # a table of texts, since names from a stranger's file are no Markdown
            _table(pd.DataFrame({title: list(rows)}), title)
    with st.expander("What is in the file"):
        tensor_table(found.tensors)


def tensor_table(tensors: tuple[TensorInfo, ...]) -> None:
    """Names, shapes, dtypes, bytes and devices."""
    columns = ["Name", "Shape", "dtype", "Bytes", "Saved from"]
    rows = [
        (
            each.name,
            " × ".join(map(str, each.shape)) or "one number",
            each.dtype,
            each.bytes,
            each.device,
        )
        for each in tensors
    ]
    _table(
        pd.DataFrame(rows, columns=columns),
        "Names, shapes, types, bytes and devices of the tensors",
        Bytes=st.column_config.NumberColumn(format="localized"),
    )


def _table(frame: pd.DataFrame, alt: str, **columns: Any) -> None:
    st.dataframe(
        frame,
        hide_index=True,
        height=min(38 + 35 * len(frame), 300),
        column_config=columns,
        alt=alt,
    )


def _evaluate(file_id: str, found: Opened, task: str, device: str) -> None:
    evaluations = st.session_state.setdefault("upload_evaluations", {})
    key = (file_id, found.model, task, device)
    if st.button(
        "Evaluate",
        type="primary",
        icon=":material/fact_check:",
        key="evaluate_upload",
    ):
        evaluations.pop(key, None)
    elif key not in evaluations:
        return
    result = _asked(
        evaluations,
        key,
        "The model is answering all test images",
        "core.evaluate.evaluation:evaluate",
        found.checkpoint,
        RunConfig(task=task, model=found.model),
        device,
    )
    if isinstance(result, str):
        st.error(result, title="The evaluation failed")
    else:
        evaluation.accuracy(result)
        st.caption(f"Evaluated on {format.provenance(result.environment)}.")
