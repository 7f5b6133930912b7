"""The charts of the Checkpoints page."""

import altair as alt
import pandas as pd

from core.ui.charts import base
from core.ui.charts.base import LATER, LINES, Chart, Palette

# The parts of the comparison between training through and resuming.
PARTS = {
    "through": "Trained through",
    "resumed": "Saved, loaded, resumed",
    "weights": "Only the weights loaded",
}


BAR_HEIGHT = 100  # pixels: as long as a name that is turned
LABELED = 0.16  # of the file: a tensor that has room for its name and shape
TURNED = 0.04  # that has room for its name, from bottom to top


def stacked(frame: pd.DataFrame) -> Chart:
    """A file as one bar, from its first byte to its last, with a segment a tensor.

    `frame` has the columns name, shape, bytes, start, end, layer. Layers have two
    colours in turn; layer -1 is what is no tensor.
    """
    colors = base.palette()
    whole = frame["end"].max()
    bytes_ = alt.X("start:Q").title("Bytes in the file").axis(format="~s")
    chart = alt.Chart(frame).encode(
        x=bytes_.scale(domain=[0, whole], nice=False),
        x2="end:Q",
        tooltip=base.tips(name="Tensor", shape="Shape")
        + base.tips(",d", bytes="Bytes"),
    )
    pair = base.either("datum.layer % 2", colors.further[1], colors.further[3])
    bar = chart.mark_bar(height=BAR_HEIGHT, stroke=colors.page, strokeWidth=1)
    named = (frame["bytes"] > TURNED * whole) & (frame["layer"] >= 0)
    labels = frame[named].assign(
        middle=lambda each: (each["start"] + each["end"]) / 2,
        label=lambda each: each["name"] + "\n" + each["shape"],
    )
    narrow = labels["bytes"] <= LABELED * whole
    ink: dict = {"color": colors.inverse}
    text = alt.Chart(labels[~narrow]).mark_text(lineBreak="\n", dy=-7, **ink)
    turned = alt.Chart(labels[narrow]).mark_text(angle=270, **ink)
    return alt.layer(
        bar.encode(color=pair),
        text.encode(x="middle:Q", text="label:N"),
        turned.encode(x="middle:Q", text="name:N"),
    ).properties(height=BAR_HEIGHT + 50)


@base.live
def resumed(colors: Palette, backend: str, steps: int, at_step: int) -> Chart:
    """Training through as a broad band, resuming as a line on it, and the mistake.

    For data with the columns part, step, loss. `at_step` is where it was interrupted.
    """
    parts = PARTS.values()
    shown = (colors.of(backend), colors.text, colors.further[0])
    step = alt.X("step:Q").title("Step").scale(domain=[0, steps], nice=False)
    chart = alt.Chart(LATER).encode(
        x=step.axis(tickCount=8),
        y=alt.Y("loss:Q").title("Loss").scale(zero=False),
        color=base.hues("part", parts, shown, columns=2, **LINES),
        tooltip=base.tips(part="Training")
        + base.tips(",d", step="Step")
        + base.tips(".6f", loss="Loss"),
    )
    through, again, weights = (
        chart.transform_filter(alt.datum.part == part) for part in parts
    )
    middle = alt.Chart(alt.Data(values=[{"step": at_step}])).encode(x="step:Q")
    label = middle.mark_text(
        text="saved, loaded", align="left", dx=6, dy=6, baseline="top", fontSize=11
    )
    return alt.layer(
        middle.mark_rule(color=colors.quiet, strokeDash=[4, 4]),
        base.lines(through, 6, opacity=0.45),
        base.lines(weights, 1.4, opacity=0.9),
        base.lines(again, 1.2),
        label.encode(y=alt.value(0), color=alt.value(colors.quiet)),
    ).properties(height=300)
