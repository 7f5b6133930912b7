"""What is in the checkpoint of a run, and its files to download."""

from collections.abc import Sequence
from itertools import accumulate
from math import prod
from typing import Any

import pandas as pd
import streamlit as st

from core.checkpoints.results import TensorInfo
from core.jobs.job import Stored
from core.ui import downloads, format, frame, take_home
from core.ui.charts import checkpoints as charts
from core.ui.checkpoints import upload
from core.ui.runs import Run
from core.ui.server import ask, engine, explained


@st.cache_data(max_entries=64, show_spinner=False)
def _asked(path: str, checkpoint: Stored) -> Any:
    """What a quick function says of a checkpoint, asked once of the worker."""
    return ask(path, checkpoint)


def draw(run: Run) -> None:
    """What is in a run's checkpoint, and its downloads."""
    assert run.result is not None
    name = take_home.file_name(run)
    with explained("The checkpoint could not be read"):
        checkpoint, stored = engine().read(run.checkpoint), run.checkpoint
        tensors = _asked("core.checkpoints.round_trip:inspect", stored)
        safetensors = _asked("core.checkpoints.round_trip:to_safetensors", stored)
        _contents(len(checkpoint), tensors)
        with st.container(horizontal=True):
            for ending, content, kind in (
                ("pt", checkpoint, "primary"),
                ("safetensors", safetensors, "secondary"),
            ):
                file, key = f"{name}.{ending}", f"download_{ending}"
                downloads.button(f"Download .{ending}", content, file, key, type=kind)
        upload.tensor_table(tensors)
        where = run.result.environment
        batch_norm = (
            " Running means and variances of batch norm are in it too: they are not "
            "parameters, but without them the model gives different answers."
        )
        st.markdown(
            f"Trained on {where.device_name} ({where.backend}). Each tensor was "
            "moved to the CPU before it was saved, so that the file loads anywhere."
            + (batch_norm if run.config.model == "cnn" else ""),
            width=frame.PROSE,
        )


def untrained() -> None:
    """Where no run has finished: the file of a model that was never trained."""
    with explained("The checkpoint could not be read"):
        size, tensors = _untrained()
        st.markdown("Until then, here is the file of an **untrained** ANN:")
        _contents(size, tensors)
        upload.tensor_table(tensors)


@st.cache_data(show_spinner=False)
def _untrained() -> tuple[int, tuple[TensorInfo, ...]]:
    file, tensors = ask("core.checkpoints.round_trip:untrained", "ann")
    return len(file), tensors


def _contents(size: int, tensors: Sequence[TensorInfo]) -> None:
    """The file as one bar of its bytes; the order in it is that of the tensors."""
    largest = max(tensors, key=lambda each: each.bytes)
    numbers = sum(prod(each.shape) for each in tensors)
    share = largest.bytes / sum(each.bytes for each in tensors)
    st.markdown(
        f"**{format.size(size)}: {len(tensors)} tensors with {numbers:,} numbers.** "
        f"`{largest.name}` alone has {share:.0%} of them."
    )
    st.altair_chart(
        charts.stacked(stack(size, tensors)),
        key="chart_stacked",
        alt=f"The file as a bar of {len(tensors)} tensors, as long as their bytes",
    )


def stack(size: int, tensors: Sequence[TensorInfo]) -> pd.DataFrame:
    """A row a tensor, and what is no tensor at the end, with where it is in the bar."""
    ends = list(accumulate(each.bytes for each in tensors))
    layers = [each.name.rpartition(".")[0] for each in tensors]
    places = list(dict.fromkeys(layers))
    rows = [
        (each.name, format.shape(each.shape), each.bytes, end, places.index(layer))
        for each, end, layer in zip(tensors, ends, layers, strict=True)
    ]
    rest = size - ends[-1]
    rows.append(("Names, types and places", "of all tensors", rest, size, -1))
    found = pd.DataFrame(rows, columns=["name", "shape", "bytes", "end", "layer"])
    return found.assign(start=found["end"] - found["bytes"])


def plain_script(run: Run) -> str:
    """How a script of the learner's own loads the download."""
    return (
        "import torch\n\n"
        f'state_dict = torch.load("{take_home.file_name(run)}.pt",\n'
        '                        map_location="cpu", weights_only=True)\n'
        f"model = {run.config.model.upper()}()  # the class from core/models.py\n"
        "model.load_state_dict(state_dict)\n"
        "model.eval()"
    )
