"""The charts of the Runs page: several runs at once, each in its own line for life."""

import altair as alt

from core.ui.charts import base
from core.ui.charts.base import AXES, LATER, LINES, Chart, Palette
from core.ui.charts.train import Looks, hue, loss_lines

HEIGHT = 300  # pixels, legend and axes included
DASHES = ([1, 0], [7, 4], [2, 3])
ELSEWHERE = "Another machine"  # with a device of which nothing is known


def _lines(colors: Palette, looks: Looks) -> tuple[alt.Color, alt.StrokeDash]:
    """The colour of each run; if several have the same, the next ones are dashed."""
    names = [name for name, _ in looks]
    hues = [hue(colors, number) for _, number in looks]
    turns = (hues[:place].count(each) for place, each in enumerate(hues))
    dashes = [DASHES[turn % len(DASHES)] for turn in turns]
    color = base.hues("run", names, hues, **LINES, columns=2, labelLimit=220)
    scale = alt.Scale(domain=names, range=dashes)
    dash = alt.StrokeDash("run:N").scale(scale).legend(None)
    return color, dash


@base.live
def losses(colors: Palette, looks: Looks, x: str, opacity: float = 1) -> Chart:
    """The loss of each drawn step, faint, under its running mean; as Train draws it."""
    color, dash = _lines(colors, looks)
    means = {"strokeDash": dash, "opacity": alt.value(opacity)}
    return loss_lines(color, x, None, alt.Scale(zero=True), HEIGHT, **means)


@base.live
def qualities(colors: Palette, looks: Looks, x: str, percent: bool) -> Chart:
    """What each run reached on the test set after each epoch, over `x` of AXES.

    For data with the columns run, step, epoch, seconds and quality.
    """
    color, dash = _lines(colors, looks)
    form = ".1%" if percent else ".3f"
    title = "Test accuracy" if percent else "Test R²"
    y = alt.Y("quality:Q").title(title).scale(zero=False)
    chart = alt.Chart(LATER).encode(
        x=alt.X(f"{x}:Q").title(AXES[x]).scale(zero=True),
        y=y.axis(format=base.PERCENT if percent else "~r"),
        color=color,
        strokeDash=dash,
        tooltip=base.tips(run="Run", epoch="Epoch")
        + base.tips(".1f", seconds="Seconds")
        + base.tips(form, quality=title),
    )
    return alt.layer(base.lines(chart, points=45)).properties(height=HEIGHT)


@base.live
def frontier(
    colors: Palette, backends: tuple[str, ...], percent: bool, wide: bool
) -> Chart:
    """Runs by their seconds and quality, and the line of those that none beats in both.

    `wide`: the seconds differ so much that their axis is logarithmic. For data with the
    columns id, run, seconds, quality, backend, when, best (whether it is on the line)
    and ring, the colour of a run that is selected, else empty. A click selects `dot`.
    """
    title = "Test accuracy" if percent else "Test R²"
    scale = (
        alt.Scale(type="log", nice=False, padding=14) if wide else alt.Scale(zero=True)
    )
    axis = alt.Axis(format="~r")
    hues = [colors.quiet if each == ELSEWHERE else colors.of(each) for each in backends]
    chart = alt.Chart(LATER).encode(
        x=alt.X("seconds:Q").title("Total seconds").scale(scale).axis(axis),
        y=alt.Y("quality:Q")
        .title(title)
        .scale(zero=False, padding=8)
        .axis(format=base.PERCENT if percent else "~r"),
    )
    best = chart.transform_filter("datum.best")
    line = best.mark_line(interpolate="step-after", color=colors.text, strokeWidth=1.5)
    dot = alt.selection_point(name="dot", fields=["id"], on="click", toggle=False)
    color = base.hues("backend", backends, hues, symbolOpacity=1)
    dots = chart.mark_circle(size=55, cursor="pointer").encode(
        color=color if len(backends) > 1 else color.legend(None),
        opacity=base.either("datum.best || datum.ring", 1, 0.45),
        tooltip=base.tips(run="Run")
        + base.tips(".2%" if percent else ".3f", quality=title)
        + base.tips(".1f", seconds="Total seconds")
        + base.tips(when="When"),
    )
    ring = chart.transform_filter("datum.ring").mark_point(
        size=190, strokeWidth=3, filled=False, opacity=1
    )
    rings = ring.encode(stroke=alt.Stroke("ring:N").scale(None))
    layers = (line.encode(order="seconds:Q"), dots.add_params(dot), rings)
    return alt.layer(*layers).properties(height=HEIGHT)
