"""The charts of the Device page, but for the bars of its cards."""

import altair as alt
import pandas as pd

from core.machine.results import SHORT_VECTORS
from core.ui.charts import base
from core.ui.charts.base import Chart


def multiplied(frame: pd.DataFrame) -> Chart:
    """A dot a way for each kind of work, over logarithmic time.

    `frame` has the columns work, way, device, nanoseconds, low, high, time.
    """
    colors = base.palette()
    known = {
        "Python loop": colors.further[3],
        SHORT_VECTORS: colors.pale,
        "One core": colors.further[0],
    }
    hues = {
        way: known.get(way, colors.cpu if device == "cpu" else colors.accelerator)
        for way, device in zip(frame["way"], frame["device"], strict=True)
    }
    ends = frame["low"].min() / 2, frame["high"].max()
    axis = base.ticks(base.decades(*ends), format="~g")
    x = alt.X("nanoseconds:Q", axis=axis).title("Nanoseconds each, logarithmic")
    rows = alt.Chart(frame).encode(
        y=alt.Y("work:N").sort(None).title(None).scale(paddingInner=0.25),
        yOffset=alt.YOffset("way:N").sort(list(hues)),
        tooltip=base.tips(work="Multiplications", way="Way", time="Median"),
    )
    return base.dots(
        rows,
        x.scale(type="log", domain=list(ends), nice=False),
        "time:N",
        22,
        color=base.hues("way", hues, hues.values(), columns=2),
    )
