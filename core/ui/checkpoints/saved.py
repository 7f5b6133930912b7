"""What is in the checkpoint of a run, and its files to download."""

from typing import Any

import streamlit as st

from core.jobs.job import Stored
from core.ui import downloads, figures, format
from core.ui.checkpoints import export, upload
from core.ui.runs import Run
from core.ui.server import ask, engine, explained


@st.cache_data(max_entries=64, show_spinner=False)
def _asked(path: str, checkpoint: Stored) -> Any:
    """What a quick function says of a checkpoint, asked once of the worker."""
    return ask(path, checkpoint)


def draw(run: Run) -> None:
    """What is in a run's checkpoint, and its downloads."""
    assert run.result is not None
    name = export.file_name(run)
    with explained("The checkpoint could not be read"):
        checkpoint, stored = engine().read(run.checkpoint), run.checkpoint
        tensors = _asked("core.checkpoints.round_trip:inspect", stored)
        safetensors = _asked("core.checkpoints.round_trip:to_safetensors", stored)
        figures.metrics(
            {
                "Tensors": str(len(tensors)),
                "Parameters": f"{run.result.parameters:,}",
                "File": format.size(len(checkpoint)),
            },
            (130, 170, 150),
        )
        with st.container(horizontal=True):
            for ending, content, kind in (
                ("pt", checkpoint, "primary"),
                ("safetensors", safetensors, "secondary"),
            ):
                file, key = f"{name}.{ending}", f"download_{ending}"
                downloads.button(f"Download .{ending}", content, file, key, type=kind)
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
