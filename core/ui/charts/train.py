"""The charts of the Train page."""

from typing import Any

import altair as alt

from core.data import curve
from core.ui.charts import base
from core.ui.charts.base import AXES, LATER, LINES, Chart, Palette

# Accuracy on Fashion-MNIST, from the README of zalandoresearch/fashion-mnist.
REFERENCES = {"people 83.5%": 0.835, "small CNN 92.5%": 0.925}
FIT_POINTS = 500  # of the training set; more would be a cloud without a middle
Looks = tuple[tuple[str, int], ...]  # what a run is called, and its number: see `hue`
TRUTH, MODEL = "The curve without noise", "The model"


def hue(colors: Palette, number: int) -> str:
    """The color of a run, for life; the numbers near it have others."""
    return colors.runs[number % len(colors.runs)]


def swatch(colors: Palette, number: int) -> str:
    """The color of a run, as an image for a table's cell."""
    fill = hue(colors, number).replace("#", "%23")
    return (
        "data:image/svg+xml;utf8,<svg xmlns='http://www.w3.org/2000/svg' width='18' "
        "height='18' viewBox='0 0 18 18'>"
        f"<circle cx='9' cy='9' r='7' fill='{fill}'/></svg>"
    )


def run_color(looks: Looks, colors: Palette) -> alt.Color:
    """The color of each run; a table is the legend."""
    shown = [hue(colors, number) for _, number in looks]
    return base.hues("run", [name for name, _ in looks], shown).legend(None)


@base.live
def losses(
    colors: Palette, looks: Looks, x: str, most: float | None, height: int = base.MIDDLE
) -> Chart:
    """The loss of each drawn step, faint, under its running mean.

    For data as core.ui.runs.loss_table makes it. `x` is a key of AXES, and `most` where
    that axis ends, None for as far as the data goes. `height` is in pixels. The last of
    several runs has the strongest line.
    """
    # Without any run, about where a loss over ten classes begins: ln 10 is 2.3.
    scale = alt.Scale(zero=True) if looks else alt.Scale(domain=[0, 2.5])
    last = looks[-1][0] if looks else ""
    width = alt.condition(f"datum.run === '{last}'", alt.value(3), alt.value(1.6))
    color = run_color(looks, colors)
    return loss_lines(color, x, most, scale, height, strokeWidth=width)


def loss_lines(
    color: alt.Color,
    x: str,
    most: float | None,
    scale: alt.Scale,
    height: int,
    **channels: Any,
) -> Chart:
    """As `losses` draws them, in the `color` of a run; `channels` are of the means."""
    ends = alt.Scale(domain=[0, most]) if most else alt.Scale(zero=True)
    chart = alt.Chart(LATER).encode(
        x=alt.X(f"{x}:Q").title(AXES[x]).scale(ends),
        y=alt.Y("loss:Q").title("Loss").scale(scale),
        color=color,
    )
    mean = chart.encode(
        y=alt.Y("smoothed:Q").title("Loss").scale(scale),
        tooltip=base.tips(run="Run")
        + base.tips(",d", step="Step")
        + base.tips(".2f", seconds="Seconds")
        + base.tips(".4f", loss="Loss"),
        **channels,
    )
    raw = base.lines(chart, 1, opacity=0.22)
    return alt.layer(raw, base.lines(mean)).properties(height=height)


@base.live
def per_epoch(
    colors: Palette, looks: Looks, y: str, epochs: int, references: bool
) -> Chart:
    """A figure after each epoch; test is the solid line, train the thin one.

    `y` is "loss", "accuracy" or "r2". For data as core.ui.runs.epoch_table makes it.
    With `references`, REFERENCES too.
    """
    percent = y == "accuracy"
    last = max(2, epochs)
    ticks = base.ticks(base.whole(last), format="d")
    room = 16 if references else 0  # pixels, for the names on the lines
    figure = alt.Y(f"{y}:Q").title(None).scale(zero=False, padding=room)
    chart = alt.Chart(LATER).encode(
        x=alt.X("epoch:Q").title("Epoch").scale(domain=[1, last]).axis(ticks),
        y=figure.axis(format=base.PERCENT if percent else "~r"),
        color=run_color(looks, colors),
        tooltip=base.tips(run="Run", split="Split", epoch="Epoch")
        + base.tips(".2%" if percent else ".4f", **{y: y}),
    )
    train = chart.transform_filter("datum.split == 'train'")
    test = chart.transform_filter("datum.split == 'test'")
    return alt.layer(
        *(_reference_lines(colors.quiet) if references else ()),
        base.lines(train, 1, opacity=0.7),
        base.lines(test, points=38),
    ).properties(height=base.MIDDLE)


def _reference_lines(color: str) -> tuple[alt.Chart, alt.Chart]:
    """A thin line across the chart for each reference, with its name on it."""
    values = [{"name": name, "y": y} for name, y in REFERENCES.items()]
    chart = alt.Chart(alt.Data(values=values)).encode(y="y:Q")
    name = chart.mark_text(
        align="right", baseline="bottom", dy=-3, fontSize=11, color=color
    )
    return (
        chart.mark_rule(strokeWidth=1, color=color, opacity=0.8),
        name.encode(text="name:N", x=alt.value("width")),
    )


@base.live
def fit(colors: Palette, backend: str) -> Chart:
    """The data of the task regression, faint, the true curve, and a model's over it.

    For data with the columns line, which is MODEL, x, y, low and high.
    """
    points = [{"x": x, "y": y} for x, y in curve.draw(FIT_POINTS, seed=0)]
    truth = [{"line": TRUTH, "x": x, "y": curve.f(x)} for x in curve.POSITIONS]
    shown = (colors.text, colors.of(backend))
    color = base.hues("line", (TRUTH, MODEL), shown, **LINES)
    # Where the fit is good one lies on the other: a second difference than the colour.
    dash = alt.StrokeDash("line:N").legend(alt.Legend(title=None, orient="top"))
    dash = dash.scale(domain=[TRUTH, MODEL], range=[[6, 4], [1, 0]])
    dots, model, true = (
        alt.Chart(data).encode(
            x=alt.X("x:Q").scale(domain=[curve.LOW, curve.HIGH], nice=False),
            y=alt.Y("y:Q").title("y").scale(domain=[-2.5, 2.5], nice=False),
        )
        for data in (alt.Data(values=points), LATER, alt.Data(values=truth))
    )
    band = model.mark_area(color=colors.of(backend), opacity=0.18, clip=True)
    return alt.layer(
        dots.mark_circle(size=14, color=colors.quiet, opacity=0.35, clip=True),
        band.encode(y="low:Q", y2="high:Q"),
        base.lines(model.encode(color=color, strokeDash=dash), 4, clip=True),
        base.lines(true.encode(color=color, strokeDash=dash), 2),
    ).properties(height=320)
