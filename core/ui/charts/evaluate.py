"""The charts of the Evaluate page."""

import altair as alt
import pandas as pd

from core.ui.charts import base
from core.ui.charts.base import Chart


def confusion(counts: tuple[tuple[int, ...], ...], classes: list[str]) -> Chart:
    """Rows are true classes, columns predicted; select a cell to get (true, predicted).

    A cell's shade is its share of its row.
    """
    table = pd.DataFrame(counts, classes, classes).rename_axis("true").reset_index()
    frame = table.melt("true", var_name="predicted", value_name="count")
    of_class = frame.groupby("true")["count"].transform("sum")
    frame["share"] = frame["count"] / of_class.clip(lower=1)
    colors = base.palette()
    across = alt.X("predicted:N").sort(classes).title("Predicted")
    chart = alt.Chart(frame).encode(
        x=across.axis(labelAngle=-40),
        y=alt.Y("true:N").sort(classes).title("True"),
    )
    fields = ["true", "predicted"]
    cell = alt.selection_point(name="cell", fields=fields, on="click", toggle=False)
    stroke = alt.value(colors.text), alt.value("transparent")
    power = {"domain": [0, 1], "type": "pow", "exponent": 0.45}  # small shares differ
    return base.heat_map(
        chart,
        base.shades("share", colors.ground, colors.cpu, **power),
        alt.condition("datum.count > 0", "count:Q", alt.value("")),
        colors,
        "datum.share > 0.35",
        select=cell,
        tooltip=base.tips(true="True", predicted="Predicted", count="Images")
        + base.tips(".1%", share="Of the true class"),
        stroke=alt.condition(cell, *stroke, empty=False),
        strokeWidth=alt.value(2),
    ).properties(height=430)


def mode_costs(frame: pd.DataFrame, figure: str, backend: str) -> Chart:
    """A bar a mode; for milliseconds with the least and the most of the repeats.

    `frame` has the columns mode, milliseconds, low, high, megabytes.
    """
    if figure != "milliseconds":
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
