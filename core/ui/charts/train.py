"""The charts of the Train page."""

import altair as alt

from core.data import curve
from core.ui.charts.base import AXES, LATER, Chart, Names, Palette, live

# Accuracy on Fashion-MNIST, from the README of zalandoresearch/fashion-mnist.
REFERENCES = {"people 83.5 %": 0.835, "small CNN 92.5 %": 0.925}


def run_colors(names: Names, backend: str, colors: Palette) -> alt.Scale:
    """The newest run has its device's colour; the earlier ones have colours in turn."""
    earlier = [
        colors.further[index % len(colors.further)] for index in range(len(names) - 1)
    ]
    return alt.Scale(domain=list(names), range=[*earlier, colors.of(backend)])


@live
def losses(
    colors: Palette, names: Names, backend: str, x: str, most: float | None
) -> Chart:
    """The loss of each drawn step, faint, under its running mean.

    For data as core.ui.runs.loss_frame makes it. `x` is a key of AXES, and `most` where
    that axis ends, None for as far as the data goes.
    """
    axis = alt.X(
        f"{x}:Q",
        title=AXES[x],
        scale=alt.Scale(domain=[0, most]) if most else alt.Scale(zero=True),
        axis=alt.Axis(tickCount=8),
    )
    color = alt.Color(
        "run:N",
        scale=run_colors(names, backend, colors),
        legend=None
        if len(names) < 2
        else alt.Legend(title=None, orient="top", symbolOpacity=1, symbolStrokeWidth=3),
    )
    base = alt.Chart(LATER).encode(x=axis, color=color)
    # Without any run, about where a loss over ten classes begins: ln 10 is 2.3.
    scale = alt.Scale(zero=True) if names else alt.Scale(domain=[0, 2.5])
    raw = base.mark_line(opacity=0.22, strokeWidth=1).encode(
        y=alt.Y("loss:Q", title="Loss", scale=scale)
    )
    mean = base.mark_line(strokeWidth=2.2).encode(
        y=alt.Y("smoothed:Q", title="Loss", scale=scale),
        tooltip=[
            alt.Tooltip("run:N", title="Run"),
            alt.Tooltip("step:Q", title="Step", format=",d"),
            alt.Tooltip("seconds:Q", title="Seconds", format=".2f"),
            alt.Tooltip("loss:Q", title="Loss", format=".4f"),
        ],
    )
    return alt.layer(raw, mean).properties(height=300)


@live
def per_epoch(
    colors: Palette, names: Names, backend: str, y: str, epochs: int, references: bool
) -> Chart:
    """A figure after each epoch; test is the solid line, train the thin one.

    `y` is "loss", "accuracy" or "r2".

    For data as core.ui.runs.epoch_frame makes it. With `references`, REFERENCES too.
    """
    percent = y == "accuracy"
    stride = max(1, epochs // 10)
    base = alt.Chart(LATER).encode(
        x=alt.X(
            "epoch:Q",
            title="Epoch",
            scale=alt.Scale(domain=[1, max(2, epochs)]),
            axis=alt.Axis(
                values=list(range(1, max(2, epochs) + 1, stride)),
                format="d",
                tickMinStep=0.5,  # with 1, Vega leaves the middle one of three out
                labelOverlap=False,
            ),
        ),
        y=alt.Y(
            f"{y}:Q",
            title=None,
            scale=alt.Scale(zero=False, nice=True),
            axis=alt.Axis(format=".0%" if percent else ".2f"),
        ),
        color=alt.Color("run:N", scale=run_colors(names, backend, colors), legend=None),
        tooltip=[
            alt.Tooltip("run:N", title="Run"),
            alt.Tooltip("split:N", title="Split"),
            alt.Tooltip("epoch:Q", title="Epoch"),
            alt.Tooltip(f"{y}:Q", format=".2%" if percent else ".4f"),
        ],
    )
    train = base.transform_filter("datum.split == 'train'")
    test = base.transform_filter("datum.split == 'test'")
    layers = [
        train.mark_line(strokeWidth=1, opacity=0.7),
        test.mark_line(strokeWidth=2.2),
        test.mark_point(size=38, filled=True, opacity=1),
    ]
    if references:
        layers = [*_reference_lines(colors), *layers]
    return alt.layer(*layers).properties(height=240)


def _reference_lines(colors: Palette) -> list[alt.Chart]:
    """A thin line across the chart for each reference, with its name on it."""
    quiet = colors.quiet
    rows = alt.Data(values=[{"name": k, "y": v} for k, v in REFERENCES.items()])
    rules = alt.Chart(rows).mark_rule(strokeWidth=1, color=quiet, opacity=0.8)
    names = alt.Chart(rows).mark_text(
        align="right", baseline="bottom", dy=-3, fontSize=11, color=quiet
    )
    return [
        rules.encode(y="y:Q"),
        names.encode(y="y:Q", text="name:N", x=alt.value("width")),
    ]


FIT_POINTS = 500  # of the training set; more would be a cloud without a middle


TRUTH, MODEL = "The curve without noise", "The model"


@live
def fit(colors: Palette, backend: str) -> Chart:
    """The data of the task regression, faint, the true curve, and a model's over it.

    For data with the columns line, which is MODEL, x, y, low and high.
    """
    points = [{"x": x, "y": y} for x, y in curve.draw(FIT_POINTS, seed=0)]
    truth = [{"line": TRUTH, "x": x, "y": curve.f(x)} for x in curve.POSITIONS]
    x = alt.X(
        "x:Q", title="x", scale=alt.Scale(domain=[curve.LOW, curve.HIGH], nice=False)
    )
    y = alt.Y("y:Q", title="y", scale=alt.Scale(domain=[-2.5, 2.5], nice=False))
    color = alt.Color(
        "line:N",
        scale=alt.Scale(domain=[TRUTH, MODEL], range=[colors.text, colors.of(backend)]),
        legend=alt.Legend(
            title=None, orient="top", symbolOpacity=1, symbolStrokeWidth=3
        ),
    )
    dots = alt.Chart(alt.Data(values=points)).mark_circle(
        size=14, color=colors.quiet, opacity=0.35, clip=True
    )
    area = alt.Chart(LATER).mark_area(color=colors.of(backend), opacity=0.18, clip=True)
    layers = [
        dots.encode(x=x, y=y),
        area.encode(x=x, y="low:Q", y2="high:Q"),
        alt.Chart(LATER)
        .mark_line(strokeWidth=3, clip=True)
        .encode(x=x, y=y, color=color),
        alt.Chart(alt.Data(values=truth))
        .mark_line(strokeWidth=1)
        .encode(x=x, y=y, color=color),
    ]
    return alt.layer(*layers).properties(height=320)
