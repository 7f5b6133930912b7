"""The charts of the Evaluate page."""

import altair as alt
import pandas as pd

from core.ui.charts.base import LIGHT, Chart, palette


def confusion(counts: tuple[tuple[int, ...], ...], classes: list[str]) -> Chart:
    """Rows are true classes, columns predicted; select a cell to get (true, predicted).

    A cell's shade is its share of its row.
    """
    frame = pd.DataFrame(
        [
            (true, predicted, count, count / max(1, sum(row)))
            for true, row in zip(classes, counts, strict=True)
            for predicted, count in zip(classes, row, strict=True)
        ],
        columns=["true", "predicted", "count", "share"],
    )
    cell = alt.selection_point(
        name="cell", fields=["true", "predicted"], on="click", toggle=False
    )
    colors = palette()
    base = alt.Chart(frame).encode(
        x=alt.X(
            "predicted:N",
            sort=classes,
            title="Predicted",
            axis=alt.Axis(labelAngle=-40),
        ),
        y=alt.Y("true:N", sort=classes, title="True"),
    )
    ground = "#f4f1ec" if colors is LIGHT else "#1d2229"
    shade = alt.Scale(
        domain=[0, 1],
        range=[ground, colors.cpu],
        type="pow",
        exponent=0.45,
        interpolate="rgb",
    )
    cells = (
        base.mark_rect(cursor="pointer")
        .encode(
            color=alt.Color("share:Q", scale=shade, legend=None),
            stroke=alt.condition(
                cell, alt.value(colors.text), alt.value("transparent"), empty=False
            ),
            strokeWidth=alt.value(2),
            tooltip=[
                alt.Tooltip("true:N", title="True"),
                alt.Tooltip("predicted:N", title="Predicted"),
                alt.Tooltip("count:Q", title="Images"),
                alt.Tooltip("share:Q", title="Of the true class", format=".1%"),
            ],
        )
        .add_params(cell)
    )
    numbers = base.mark_text(fontSize=11).encode(
        text=alt.condition("datum.count > 0", "count:Q", alt.value("")),
        color=alt.condition(
            "datum.share > 0.35",
            alt.value("#ffffff" if colors is LIGHT else "#14171c"),
            alt.value(colors.text),
        ),
    )
    return alt.layer(cells, numbers).properties(height=430)


def mode_costs(frame: pd.DataFrame, figure: str, backend: str) -> Chart:
    """A bar a mode; for milliseconds with the least and the most of the repeats.

    `frame` has the columns mode, milliseconds, low, high, megabytes.
    """
    colors = palette()
    most = frame["high" if figure == "milliseconds" else figure].max()
    base = alt.Chart(frame).encode(
        y=alt.Y("mode:N", sort=list(frame["mode"]), title=None)
    )
    x = alt.X(
        f"{figure}:Q", title=None, scale=alt.Scale(domain=[0, most * 1.25], nice=False)
    )
    layers = [
        base.mark_bar(color=colors.of(backend), height=18).encode(x=x),
        base.mark_text(align="left", dx=6, dy=-1, color=colors.text).encode(
            x=alt.X("high:Q" if figure == "milliseconds" else f"{figure}:Q"),
            text=alt.Text(f"{figure}:Q", format=".1f"),
        ),
    ]
    if figure == "milliseconds":
        ranges = base.mark_rule(color=colors.text, strokeWidth=1)
        layers.append(ranges.encode(x="low:Q", x2="high:Q"))
    return alt.layer(*layers).properties(height=alt.Step(36))


def probabilities(classes: list[str], values: tuple[float, ...], backend: str) -> Chart:
    """A bar a class with its probability; the likeliest one in the device's colour."""
    colors = palette()
    frame = pd.DataFrame({"class": classes, "p": values, "best": False})
    frame.loc[frame["p"].idxmax(), "best"] = True
    base = alt.Chart(frame).encode(
        y=alt.Y("class:N", sort=classes, title=None),
        x=alt.X(
            "p:Q",
            title="Probability",
            scale=alt.Scale(domain=[0, 1.12]),
            axis=alt.Axis(format=".0%", values=[0, 0.25, 0.5, 0.75, 1]),
        ),
    )
    bar = base.mark_bar(height=14).encode(
        color=alt.condition(
            "datum.best", alt.value(colors.of(backend)), alt.value(colors.quiet)
        )
    )
    number = base.mark_text(align="left", dx=5, color=colors.text).encode(
        text=alt.Text("p:Q", format=".1%")
    )
    return alt.layer(bar, number).properties(height=alt.Step(24))
