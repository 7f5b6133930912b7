"""The charts of the Scale page."""

import altair as alt
import pandas as pd

from core.ui.charts import base
from core.ui.charts.base import LATER, LINES, Chart, Palette

AVERAGE, AT_ONCE = "their average", "all images at once"


def _hues(colors: Palette, ranks: int) -> list[str]:
    """A color for each rank; none is a device's."""
    return list(colors.runs[:ranks])


@base.live
def losses(colors: Palette, ranks: int) -> Chart:
    """The loss over the steps, a line a rank; for data with step, loss and rank."""
    names = [f"rank {number}" for number in range(ranks)]
    chart = alt.Chart(LATER).encode(
        x=alt.X("step:Q").title("Step"),
        y=alt.Y("loss:Q").title("Loss on its own images").scale(zero=True),
        color=base.hues("rank", names, _hues(colors, ranks), **LINES),
        tooltip=base.tips(rank="Rank")
        + base.tips(",d", step="Step")
        + base.tips(".4f", loss="Loss"),
    )
    return base.lines(chart, 1.6).properties(height=base.TALL)


def gradients(frame: pd.DataFrame, ranks: int) -> Chart:
    """Dots of the ranks for each class, and between them their mean, in a ring.

    The ring is what the whole batch says, computed at once.

    `frame` has the columns label (of the class), rank, gradient, average and alone.
    """
    colors = base.palette()
    names = list(dict.fromkeys(frame["rank"]))
    rows = base.rows(frame, "label", tooltip=_of_gradients())
    x = alt.X("gradient:Q").title("Gradient of the last layer's bias").axis(format="~r")
    told = [*names, AVERAGE, AT_ONCE]
    shown = [*_hues(colors, ranks), colors.text, colors.quiet]
    hues = base.hues("rank", told, shown, symbolOpacity=1, columns=2)
    dots = rows.mark_circle(size=80, opacity=1).encode(x=x, color=hues)
    spans = rows.mark_rule(opacity=0.4).encode(x="gradient:Q", x2="average:Q")
    mean = rows.mark_tick(thickness=3, size=14).encode(
        x="average:Q", color=alt.datum(AVERAGE)
    )
    ring = rows.mark_point(size=260, strokeWidth=1.5).encode(
        x="alone:Q", color=alt.datum(AT_ONCE)
    )
    return alt.layer(spans, ring, dots, mean).properties(height=alt.Step(27))


def _of_gradients() -> list[alt.Tooltip]:
    return base.tips(label="Class", rank="Rank") + base.tips(
        ".5f", gradient="Its gradient", average="The average", alone="By one process"
    )


def steps(frame: pd.DataFrame, backend: str) -> Chart:
    """A bar a way, its end outlined where gradients are exchanged.

    `frame` has the columns way, compute, milliseconds, low, high and time.
    """
    colors = base.palette()
    hue = colors.of(backend)
    rows = base.rows(
        frame,
        "way",
        limit=190,
        tooltip=base.tips(way="Way", time="A step, median")
        + base.tips(".3g", compute="Of it computing, ms")
        + base.tips(".3g", low="Middle half from, ms", high="to, ms"),
    )
    x = alt.X("milliseconds:Q").title("Milliseconds per step")
    compute = rows.mark_bar(height=16, color=hue).encode(x="compute:Q")
    ends = alt.value("transparent")
    whole = base.bars(rows, x, "time:N", fill=ends, stroke=alt.value(hue))
    return alt.layer(compute, whole).properties(height=alt.Step(34))


def orders(frame: pd.DataFrame) -> Chart:
    """The images that each rank is fed, as numbers; a row an epoch, a panel a way.

    `frame` has the columns way, epoch, place, image and rank.
    """
    colors = base.palette()
    ranks = list(dict.fromkeys(frame["rank"]))
    cells = alt.Chart(frame).encode(
        x=alt.X("place:O").title(None).axis(None),
        y=alt.Y("epoch:N").title(None).sort(None),
        tooltip=base.tips(epoch="When", rank="Rank", image="Image"),
    )
    boxes = cells.mark_rect(opacity=0.3, stroke=colors.page, strokeWidth=2).encode(
        color=base.hues("rank", ranks, _hues(colors, len(ranks)), symbolOpacity=0.3)
    )
    texts = cells.mark_text(fontSize=13).encode(text="image:N")
    size = {"width": alt.Step(24), "height": alt.Step(30)}
    chart = alt.layer(boxes, texts).properties(**size)
    panel = alt.Row("way:N").title(None).sort(list(dict.fromkeys(frame["way"])))
    return chart.facet(row=panel.header(labelAnchor="start", labelOrient="top"))
