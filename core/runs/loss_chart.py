"""The loss chart, and the charts of accuracy or R² after each epoch."""

import json
from typing import Any

import altair as alt

from core.ui import charts as base
from core.ui.charts import AXES, LATER, LINES, Chart, Palette

# Accuracy on Fashion-MNIST, from the README of zalandoresearch/fashion-mnist.
REFERENCES = {"people 83.5%": 0.835, "small CNN 92.5%": 0.925}
DASHES = ([1, 0], [7, 4], [2, 3])
HEIGHT = 300  # pixels of the charts on Runs, legend and axes included
ROW_HEIGHT = 35  # pixels of a table's row with one line
SHORT = 20  # characters; a longer name is in a legend, not at its line's end
Looks = tuple[tuple[str, int], ...]  # the name of each run, and its number for `hue`


def hue(colors: Palette, number: int) -> str:
    """A run's color, which never changes; nearby numbers have different colors."""
    return colors.runs[number % len(colors.runs)]


def swatch(colors: Palette, number: int, row_height: int = ROW_HEIGHT) -> str:
    """The color of a run, as an image for a table's cell.

    A cell's image is as high as its row, so in a higher row, it is narrower.
    """
    fill = hue(colors, number).replace("#", "%23")
    height = 18 * row_height / ROW_HEIGHT
    return (
        "data:image/svg+xml;utf8,<svg xmlns='http://www.w3.org/2000/svg' width='18' "
        f"height='{height:g}' viewBox='0 0 18 {height:g}'>"
        f"<circle cx='9' cy='{height / 2:g}' r='7' fill='{fill}'/></svg>"
    )


def _colors(looks: Looks, colors: Palette) -> alt.Color:
    hues = [hue(colors, number) for _, number in looks]
    names = [name for name, _ in looks]
    # Long names are below each other on a phone, where two of them don't fit in a row.
    row = 2 * (base.CHARACTER_PIXELS * max(map(len, names), default=0) + 20)
    columns = {"expr": f"width < {min(row, 400):.0f} ? 1 : 2"}
    return base.hues("run", names, hues, **LINES, columns=columns, labelLimit=220)


def _dashes(looks: Looks, colors: Palette) -> alt.StrokeDash:
    """Solid lines, except that later runs with an earlier run's color are dashed."""
    hues = [hue(colors, number) for _, number in looks]
    turns = (hues[:place].count(color) for place, color in enumerate(hues))
    dashes = [DASHES[turn % len(DASHES)] for turn in turns]
    scale = alt.Scale(domain=[name for name, _ in looks], range=dashes)
    return alt.StrokeDash("run:N").scale(scale).legend(None)


def _loss(column: str, top: float | None) -> alt.Y:
    """The y axis of a loss; its labels stay short even if a run diverges."""
    short = "datum.value < 10000 ? format(datum.value, '~g') : "
    axis = alt.Axis(labelExpr=f"{short}format(datum.value, '.1~e')")
    scale = alt.Scale(domain=[0, top], nice=False) if top else alt.Scale(zero=True)
    return alt.Y(f"{column}:Q").title("Loss").scale(scale).axis(axis)


@base.live
def losses(
    colors: Palette,
    looks: Looks,
    x: str,
    most: float | None = None,
    height: int = base.MIDDLE,
    alike: bool = False,
    top: float | None = None,
) -> Chart:
    """A chart of `loss_table`: the running mean of each run's loss, with its name.

    `x` is a key of AXES. `most` is the end of the x axis, and `top` the end of the loss
    axis; None means the data's end. If the runs are not `alike`, the last one has the
    strongest line. The losses themselves are a faint line, only for the last run if
    there are several: the noise of all of them would hide the means.
    """
    names = [name for name, _ in looks]
    longest = max(map(len, names), default=0)
    color, ends = _colors(looks, colors), alt.Scale(zero=True)
    if most:
        ends = alt.Scale(domain=[0, most])
    if longest <= SHORT:
        color = color.legend(None)
        ends.range = base.before(names)
    last = f"datum.run === {json.dumps(names[-1] if names else '')}"
    means: dict[str, Any] = {"strokeDash": _dashes(looks, colors)}
    if not alike:
        means["strokeWidth"] = base.either(last, 3, 1.6)
        means["opacity"] = base.either(last, 1, 0.6)
    chart = alt.Chart(LATER).encode(
        x=alt.X(f"{x}:Q").title(AXES[x]).scale(ends),
        y=_loss("loss", top),
        color=color,
    )
    mean = chart.encode(
        y=_loss("smoothed", top),
        tooltip=base.tips(run="Run")
        + base.tips(",d", step="Step")
        + base.tips(".2f", seconds="Seconds")
        + base.tips(".4~g", loss="Loss"),
        **means,
    )
    newest = chart.transform_filter("false" if alike and len(looks) > 1 else last)
    raw = base.lines(newest, 1, opacity=0.22, clip=True)
    by_hand = chart.transform_filter("isValid(datum.rate)").encode(y=alt.value(0))
    # Screen readers would announce marks without data as images without a name.
    rule = by_hand.mark_rule(strokeDash=[3, 3], aria=False)
    rule = rule.encode(y2=alt.value("height"))
    tip = base.tips(".2~g", rate="Learning rate by hand") + base.tips(",d", step="Step")
    flag = by_hand.mark_point(
        shape="triangle-down", size=90, filled=True, opacity=1, aria=False
    )
    layers = [raw, base.lines(mean, clip=True), rule, flag.encode(tooltip=tip)]
    if longest <= SHORT:
        layers += _names(chart, top, colors)
    return alt.layer(*layers).properties(height=height)


def _names(chart: alt.Chart, top: float | None, colors: Palette) -> list[alt.Chart]:
    """Each run's name right of its line's end, legible where it crosses another."""
    ends = chart.transform_filter("isValid(datum.name_at)")
    ends = ends.encode(y=_loss("name_at", top), text="run:N")
    name: dict[str, Any] = {"align": "left", "dx": 8, "aria": False}
    halo = ends.mark_text(stroke=colors.page, strokeWidth=4, opacity=0.8, **name)
    return [halo, ends.mark_text(**name)]


@base.live
def per_epoch(
    colors: Palette,
    looks: Looks,
    y: str,
    epochs: int,
    references: bool,
    top: float | None = None,
) -> Chart:
    """A chart of the column `y` of `epoch_table`: test is a thick line, train thin."""
    percent = y == "accuracy"
    last = max(2, epochs)
    ends = alt.Scale(domain=[1, last], padding=6)  # pixels, for the points at both ends
    ticks = base.ticks(base.whole_numbers(last), format="d")
    # Pixels, for the names of the reference lines, or for the outermost points.
    room = 16 if references else 6
    figure = alt.Y(f"{y}:Q").scale(zero=False, padding=room)
    figure = figure.axis(format=base.PERCENT if percent else "~r")
    if y == "loss":
        figure = _loss(y, top)
        figure = figure if top else figure.scale(zero=False, padding=room)
    chart = alt.Chart(LATER).encode(
        x=alt.X("epoch:Q").title("Epoch").scale(ends).axis(ticks),
        y=figure.title(None),
        color=_colors(looks, colors).legend(None),
        tooltip=base.tips(run="Run", split="Split", epoch="Epoch")
        + base.tips(".2%" if percent else ".4~g", **{y: y}),
    )
    train = chart.transform_filter("datum.split == 'train'")
    test = chart.transform_filter("datum.split == 'test'")
    return alt.layer(
        *(_reference_lines(colors.quiet) if references else ()),
        base.lines(train, 1, opacity=0.7, clip=True),
        base.lines(test, points=38, clip=True),
    ).properties(height=base.MIDDLE)


def _reference_lines(color: str) -> tuple[alt.Chart, alt.Chart]:
    """Thin lines across the chart, one for each of REFERENCES, and their names."""
    values = [{"name": name, "y": y} for name, y in REFERENCES.items()]
    chart = alt.Chart(alt.Data(values=values)).encode(y="y:Q")
    # The upper name is above its line and the lower one below, so they never meet.
    side = alt.expr("datum.y > 0.9 ? 'line-bottom' : 'line-top'")
    name = chart.mark_text(align="right", baseline=side, fontSize=11, color=color)
    return (
        chart.mark_rule(strokeWidth=1, color=color, opacity=0.8),
        name.encode(text="name:N", x=alt.value("width")),
    )


@base.live
def qualities(colors: Palette, looks: Looks, x: str, percent: bool) -> Chart:
    """A chart of `epoch_table`: test accuracy if `percent`, or else test R².

    `x` is a key of AXES.
    """
    column, title, tip, axis = (
        ("accuracy", "Test accuracy", ".1%", base.PERCENT)
        if percent
        else ("r2", "Test R²", ".3f", "~r")
    )
    chart = alt.Chart(LATER).transform_filter("datum.split == 'test'")
    chart = chart.encode(
        x=alt.X(f"{x}:Q").title(AXES[x]).scale(zero=True),
        y=alt.Y(f"{column}:Q").title(title).scale(zero=False).axis(format=axis),
        color=_colors(looks, colors),
        strokeDash=_dashes(looks, colors),
        tooltip=base.tips(run="Run", epoch="Epoch")
        + base.tips(".1f", seconds="Seconds")
        + base.tips(tip, **{column: title}),
    )
    return alt.layer(base.lines(chart, points=45)).properties(height=HEIGHT)
