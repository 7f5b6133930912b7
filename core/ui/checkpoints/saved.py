"""What is in the checkpoint of a run, and its files to download."""

from typing import Any

import streamlit as st

from core.checkpoints.results import TensorInfo
from core.ui import downloads, figures, format, runs
from core.ui.checkpoints import export, upload
from core.ui.runs import Run
from core.ui.server import engine, explained


@st.cache_data(max_entries=64, show_spinner=False)
def _asked(path: str, run_id: str) -> Any:
    """What a quick function says of a run's checkpoint, asked once of the worker."""
    finished = runs.run(run_id)
    assert finished is not None
    assert finished.result is not None
    return engine().ask(path, finished.result.checkpoint)


def draw(run: Run) -> None:
    """What is in a run's checkpoint, and its downloads."""
    assert run.result is not None
    checkpoint = run.result.checkpoint
    with explained("The checkpoint could not be read"):
        tensors = _asked("core.checkpoints.round_trip:inspect", run.id)
        safetensors = _asked("core.checkpoints.round_trip:to_safetensors", run.id)
        _contents(run, checkpoint, tensors, safetensors)


def _contents(
    run: Run, checkpoint: bytes, tensors: tuple[TensorInfo, ...], safetensors: bytes
) -> None:
    assert run.result is not None
    figures.metrics(
        {
            "Tensors": str(len(tensors)),
            "Parameters": f"{run.result.parameters:,}",
            "File": format.size(len(checkpoint)),
        },
        (130, 170, 150),
    )
    name = export.file_name(run)
    with st.container(horizontal=True):
        downloads.button(
            "Download .pt", checkpoint, f"{name}.pt", "download_pt", type="primary"
        )
        downloads.button(
            "Download .safetensors",
            safetensors,
            f"{name}.safetensors",
            "download_safetensors",
        )
    upload.tensor_table(tensors)
    where = run.result.environment
    st.markdown(
        f"Trained on {where.device_name} ({where.backend}). Each tensor was "
        "moved to the CPU before it was saved, so that the file loads anywhere."
    )
    if run.config.model == "cnn":
        st.markdown(
            "Running means and variances of batch norm are in it too: they are not "
            "parameters, but without them the model answers something else."
        )


def plain_script(run: Run) -> str:
    """How a script of the learner's own loads the download."""
    return (
        "import torch\n\n"
        f'state_dict = torch.load("{export.file_name(run)}.pt",\n'
        '                        map_location="cpu", weights_only=True)\n'
        f"model = {run.config.model.upper()}()  # the class from core/models.py\n"
        "model.load_state_dict(state_dict)\n"
        "model.to(device).eval()"
    )
