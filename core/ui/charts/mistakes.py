"""The chart of the Mistakes page."""

import altair as alt
import pandas as pd

from core.ui.charts import base
from core.ui.charts.base import LINES, MIDDLE, Chart

BROKEN, FIXED = "Broken", "Fixed"


def halves(frame: pd.DataFrame, x: str, y: str) -> Chart:
    """Both halves of a silent mistake, step by step; `x` and `y` are titles.

    `frame` has the columns half, step, value.
    """
    colors = base.palette()
    names = (BROKEN, FIXED)
    legend = alt.Legend(title=None, orient="top")
    dash = alt.StrokeDash("half:N").legend(legend)
    chart = alt.Chart(frame).encode(
        x=alt.X("step:Q").title(x).scale(domain=[1, frame["step"].max()], nice=False),
        y=alt.Y("value:Q").title(y),
        color=base.hues("half", names, (colors.wrong, colors.right), **LINES),
        strokeDash=dash.scale(domain=names, range=[[5, 3], [1, 0]]),
        tooltip=base.tips(half="Half") + base.tips(".3g", step=x, value=y),
    )
    return base.lines(chart).properties(height=MIDDLE)
