"""The charts of the Evaluate page."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

import altair as alt
import pandas as pd

from core.ui.charts import base
from core.ui.charts.base import Chart

MATRIX_HEIGHT = 420  # pixels
STRONGEST = 0.6  # share of the full color in the cell of the commonest mistake


def confusion(
    counts: tuple[tuple[int, ...], ...],
    classes: list[str],
    order: list[str],
    chosen: tuple[str, str],
) -> Chart:
    """Rows are true classes, columns predicted; select a cell to get (true, predicted).

    Right answers are gray. The shade of an error is its share of its row. `order` is
    that of the classes; the cell that is `chosen` is selected at first.
    """
    table = pd.DataFrame(counts, classes, classes).rename_axis("true").reset_index()
    frame = table.melt("true", var_name="predicted", value_name="count")
    of_class = frame.groupby("true")["count"].transform("sum")
    frame["share"] = frame["count"] / of_class.clip(lower=1)
    frame["right"] = frame["true"] == frame["predicted"]
    worst = frame.loc[~frame["right"], "share"].max() or 1
    colors = base.palette()
    names: Any = {"labelOverlap": False, "labelColor": colors.text}
    chart = alt.Chart(frame).encode(
        x=alt.X("predicted:N")
        .sort(order)
        .title("Predicted")
        .axis(labelAngle=-40, **names),
        y=alt.Y("true:N").sort(order).title("True").axis(**names),
    )
    fields = ["true", "predicted"]
    cell = alt.selection_point(
        name="cell",
        fields=fields,
        on="click",
        clear=False,
        toggle=False,
        value=[dict(zip(fields, chosen, strict=True))],
    )
    stroke = alt.value(colors.text), alt.value("transparent")
    # Small shares differ, and the ink is legible on the largest.
    scale = {"domain": [0, worst / STRONGEST**2], "type": "pow", "exponent": 0.5}
    shade = base.shades("share", colors.ground, colors.wrong, **scale)
    return base.heat_map(
        chart,
        alt.condition("datum.right", alt.value(colors.quiet), shade),
        alt.condition("datum.count > 0", "count:Q", alt.value("")),
        colors,
        select=cell,
        fillOpacity=base.either("datum.right", 0.3, 1),
        tooltip=base.tips(true="True", predicted="Predicted", count="Images")
        + base.tips(".1%", share="Of the true class"),
        stroke=alt.condition(cell, *stroke, empty=False),
        strokeWidth=alt.value(2),
    ).properties(height=MATRIX_HEIGHT)


def costs(readings: Mapping[str, Sequence[float]], figure: str, backend: str) -> Chart:
    """A bar a mode: the median, and where there are repeats the least and the most."""
    frame = pd.DataFrame(
        {"mode": mode, figure: median(each), "low": min(each), "high": max(each)}
        for mode, each in readings.items()
    )
    if all(len(each) == 1 for each in readings.values()):
        frame = frame.drop(columns=["low", "high"])
    return base.bars(
        base.rows(frame, "mode"),
        alt.X(f"{figure}:Q").title(figure.capitalize()),
        alt.Text(f"{figure}:Q").format(".1f"),
        36,
        height=18,
        color=alt.value(base.palette().of(backend)),
    )


def probabilities(classes: list[str], values: tuple[float, ...], backend: str) -> Chart:
    """A bar a class with its probability; the likeliest one in the device's colour."""
    colors = base.palette()
    frame = pd.DataFrame({"class": classes, "p": values, "best": False})
    frame.loc[frame["p"].idxmax(), "best"] = True
    x = alt.X("p:Q").title("Probability").scale(domain=[0, 1])
    return base.bars(
        base.rows(frame, "class"),
        x.axis(base.ticks((0, 0.25, 0.5, 0.75, 1), format=".0%")),
        alt.Text("p:Q").format(".1%"),
        24,
        height=14,
        color=base.either("datum.best", colors.of(backend), colors.quiet),
    )
