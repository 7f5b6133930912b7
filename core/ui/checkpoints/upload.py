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
from core.evaluate.results import Evaluation
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
    asked = None if model == SUGGESTED else model
    outcome = _open(file, asked)
    if isinstance(outcome, str):
        st.error(outcome, title="The file was not opened", icon=":material/block:")
        return
    _contents(outcome)
    if outcome.checkpoint is not None:
        _evaluate(file.file_id, outcome, task, device)


def _open(file: Any, model: str | None) -> Opened | str:
    """What is in the file, or why not; asked of the worker once."""
    opened = st.session_state.setdefault("opened_uploads", {})
    key = (file.file_id, model)
    if key not in opened:
        opened.clear()
        with st.spinner("A worker opens the file in a process of its own"):
            try:
                opened[key] = engine().ask(
                    "core.checkpoints.upload:open_safely",
                    file.getvalue(),
                    file.name,
                    model,
                    seconds=60,
                )
            except ExplainedError as error:
                opened[key] = str(error)
    return opened[key]


def _contents(found: Opened) -> None:
    name = format.NAMES[found.model]
    count = len(found.tensors)
    if found.checkpoint is not None:
        st.success(
            f"**It fits the {name}.** {count} tensors, {found.format}.",
            icon=":material/check_circle:",
        )
    else:
        st.error(
            f"Compared by name: {_differences(found)}. Choose another "
            "architecture, or save the state_dict of a model with these layers.",
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
        _table(
            [f"{theirs} → {ours}" for theirs, ours in found.renamed],
            "In the file → in the model",
        )
    if found.missing:
        _table(found.missing, "Missing: the model has it, the file does not")
    if found.unexpected:
        _table(found.unexpected, "Unexpected: the file has it, the model does not")
    if found.misshapen:
        _table(
            [
                f"{n}: {theirs} in the file, {ours} in the model"
                for n, theirs, ours in found.misshapen
            ],
            "Misshapen: the name is right, the shape or type is not",
        )
    with st.expander("What is in the file"):
        tensor_table(found.tensors)


def _differences(found: Opened) -> str:
    counts = {
        "missing": len(found.missing),
        "unexpected": len(found.unexpected),
        "misshapen": len(found.misshapen),
    }
    return ", ".join(f"{count} {what}" for what, count in counts.items() if count)


def _table(rows: Any, title: str) -> None:
    # A table of texts, since names from a stranger's file are not Markdown.
    st.dataframe(
        pd.DataFrame({title: [str(row) for row in rows]}),
        hide_index=True,
        height=min(38 + 35 * len(rows), 300),
        alt=title,
    )


def tensor_table(tensors: tuple[TensorInfo, ...]) -> None:
    """Names, shapes, dtypes, bytes and devices."""
    st.dataframe(
        pd.DataFrame(
            [
                (
                    each.name,
                    " × ".join(map(str, each.shape)) or "one number",
                    each.dtype,
                    each.bytes,
                    each.device,
                )
                for each in tensors
            ],
            columns=["Name", "Shape", "dtype", "Bytes", "Saved from"],
        ),
        hide_index=True,
        height=min(38 + 35 * len(tensors), 300),
        column_config={"Bytes": st.column_config.NumberColumn(format="localized")},
        alt="Names, shapes, types, bytes and devices of the tensors",
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
        config = RunConfig(task=task, model=found.model)
        try:
            with st.spinner("The model is answering all test images"):
                evaluations[key] = engine().ask(
                    "core.evaluate.evaluation:evaluate",
                    found.checkpoint,
                    config,
                    device,
                    seconds=60,
                )
        except ExplainedError as error:
            st.error(str(error), title="The evaluation failed")
            return
    if key in evaluations:
        result: Evaluation = evaluations[key]
        evaluation.accuracy(result)
        st.caption(f"Evaluated on {format.provenance(result.environment)}.")
