"""The charts of the home page."""

from collections.abc import Sequence

import altair as alt

from core.ui.charts import base
from core.ui.charts.base import LATER, Chart, Palette

MARKS = ("right", "wrong", "other")


@base.live
def answers(colors: Palette, names: Sequence[str]) -> Chart:
    """A bar for each of these classes, the likeliest first, with its probability.

    For data with the columns class, p and mark, which is one of MARKS.
    """
    label = alt.Axis(labelLimit=110, labelFontSize=13, labelColor=colors.text)
    chart = alt.Chart(LATER).encode(
        y=alt.Y("class:N").title(None).sort(list(names)).axis(label),
        x=alt.X("p:Q").scale(domain=[0, 1.25]).axis(None),
    )
    shades = alt.Scale(domain=MARKS, range=[colors.right, colors.wrong, colors.quiet])
    bar = chart.mark_bar(height=12).encode(
        color=alt.Color("mark:N").scale(shades).legend(None)
    )
    text = chart.mark_text(align="left", dx=5, fontSize=12, color=colors.text)
    percent = alt.Text("p:Q").format(".1%")
    return alt.layer(bar, text.encode(text=percent)).properties(height=alt.Step(24))
