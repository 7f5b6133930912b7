"""The Checkpoints page: the tensors in a run's checkpoint, and files to download."""

from collections.abc import Sequence
from math import prod
from typing import Any

import altair as alt
import pandas as pd
import streamlit as st

from core.jobs.job import Stored
from core.lessons.checkpoints.checkpoints_result import TensorInfo
from core.runs import finished_run_page as finished_run
from core.ui import charts, controls, figures, format, frame
from core.ui.charts import Chart
from core.ui.runs import Run
from core.ui.server import ask_of_model, ask_once, engine, explained
from to_device.words import Words

words = Words(__file__)

BAR_HEIGHT = 100  # pixels: high enough for a name that reads upward
LABELED = 0.16  # from this share of the file on, a tensor has room for name and shape
TURNED = 0.04  # from this share on, a tensor has room for a name that reads upward


def draw(run: Run | None) -> None:
    """Draw the checkpoint of a run, or of an untrained model if `run` is None."""
    model = run.config.model if run else "ann"
    st.code(
        'torch.save(model.state_dict(), "model.pt")\n\n'
        f"model = {model.upper()}()  # elsewhere: build the same model first\n"
        'weights = torch.load("model.pt", map_location=device, weights_only=True)\n'
        "model.load_state_dict(weights)\n"
        "model.to(device)",
        wrap_lines=True,
    )
    st.markdown(words("save.script"), width=frame.PROSE)
    st.markdown(words("save.text"), width=frame.PROSE)
    if run is None:
        finished_run.nothing_yet()
    with explained("The checkpoint could not be read"):
        if run is None:
            file, tensors = ask_once("core.lessons.checkpoints.round_trip:untrained")
            st.markdown("Here is an **untrained** ANN's file instead:")
            contents(len(file), tensors)
            tensor_table(tensors)
            return
        stored: Stored = run.checkpoint
        file = engine().read(stored)
        tensors = ask_of_model("core.lessons.checkpoints.round_trip:inspect", stored)
        safetensors = ask_of_model(
            "core.lessons.checkpoints.round_trip:to_safetensors", stored
        )
        contents(len(file), tensors)
        with st.container(horizontal=True):
            for ending, content, kind in (
                ("pt", file, "primary"),
                ("safetensors", safetensors, "secondary"),
            ):
                name = f"{finished_run.file_name(run)}.{ending}"
                label, key = f"Download .{ending}", f"download_{ending}"
                controls.download(label, content, name, key, type=kind)
        tensor_table(tensors)
        assert run.result is not None
        where = run.result.environment
        st.markdown(
            f"Trained on {where.device_name} ({where.backend}). The app moved each "
            "tensor to the CPU before saving it, so the file loads anywhere."
            + (words("save.batch_norm") if model == "cnn" else "")
            + (words("save.standardized") if _is_standardized(run) else ""),
            width=frame.PROSE,
        )


def _is_standardized(run: Run) -> bool:
    return run.config.model == "ann" and run.config.normalize


def contents(size: int, tensors: Sequence[TensorInfo]) -> None:
    """Draw the file as a bar.

    The length of a tensor's segment shows how many bytes the tensor takes.
    """
    largest = max(tensors, key=lambda tensor: tensor.bytes)
    numbers = sum(prod(tensor.shape) for tensor in tensors)
    share = largest.bytes / sum(tensor.bytes for tensor in tensors)
    st.markdown(
        f"**{format.size(size)}: {len(tensors)} tensors with {numbers:,} values.** "
        f"`{largest.name}` alone takes up {share:.0%} of these bytes."
    )
    st.altair_chart(
        file_bar(size, tensors),
        key="chart_stacked",
        alt=f"The file as a bar, with a segment for each of the {len(tensors)} tensors",
    )


def file_bar(size: int, tensors: Sequence[TensorInfo]) -> Chart:
    """A bar with a segment for each tensor, and a last segment for all other bytes.

    Neighboring layers differ in color.
    """
    rows: list[tuple] = [
        (info.name, format.shape(info.shape), info.bytes, info.name.rpartition(".")[0])
        for info in tensors
    ]
    rest = size - sum(tensor.bytes for tensor in tensors)
    rows.append(("Names, types, and positions", "of all tensors", rest, None))
    frame = pd.DataFrame(rows, columns=["name", "shape", "bytes", "layer"])
    frame["layer"], _ = pd.factorize(frame["layer"])  # a number per layer, -1 for None
    frame["end"] = frame["bytes"].cumsum()
    frame["start"] = frame["end"] - frame["bytes"]
    colors = charts.palette()
    bytes_ = alt.X("start:Q").title("Bytes in the file")
    bytes_ = bytes_.axis(labelExpr="format(datum.value, '~s')")  # writes 0, not 0k
    chart = alt.Chart(frame).encode(
        x=bytes_.scale(domain=[0, size], nice=False),
        x2="end:Q",
        tooltip=charts.tips(name="Tensor", shape="Shape")
        + charts.tips(",d", bytes="Bytes"),
    )
    pair = charts.either("datum.layer % 2", colors.further[1], colors.further[3])
    bar = chart.mark_bar(height=BAR_HEIGHT, stroke=colors.page, strokeWidth=1)
    named = (frame["bytes"] > TURNED * size) & (frame["layer"] >= 0)
    labels = frame[named].assign(
        middle=lambda rows: (rows["start"] + rows["end"]) / 2,
        label=lambda rows: rows["name"] + "\n" + rows["shape"],
    )
    narrow = labels["bytes"] <= LABELED * size
    ink: dict = {"color": colors.inverse}
    text = alt.Chart(labels[~narrow]).mark_text(lineBreak="\n", dy=-7, **ink)
    turned = alt.Chart(labels[narrow]).mark_text(angle=270, **ink)
    return alt.layer(
        bar.encode(color=pair),
        text.encode(x="middle:Q", text="label:N"),
        turned.encode(x="middle:Q", text="name:N"),
    ).properties(height=BAR_HEIGHT + 50)


def tensor_table(tensors: Sequence[TensorInfo]) -> None:
    whole = sum(tensor.bytes for tensor in tensors) or 1
    rows = [
        (
            tensor.name,
            " × ".join(map(str, tensor.shape)) or "one value",
            tensor.dtype,
            tensor.bytes,
            tensor.bytes / whole,
            tensor.device,
        )
        for tensor in tensors
    ]
    table(
        rows,
        ["Name", "Shape", "dtype", "Bytes", "Share", "Saved from"],
        "Names, shapes, types, bytes, and devices of the tensors",
        formats={"Bytes": "localized", "Share": "percent"},
    )


def table(rows: list[tuple], columns: list[str], alt: str, **more: Any) -> None:
    """Draw a table that is at most 300 pixels high; a longer table scrolls."""
    figures.table(rows, columns, alt, height=min(38 + 35 * len(rows), 300), **more)
