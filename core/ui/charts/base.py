"""Charts: a DataFrame in, an alt.Chart out; for what lives, a specification."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import streamlit as st

from core.data import curve


@dataclass(frozen=True)
class Palette:
    """The colours of one theme. `further` are for runs that came earlier."""

    accelerator: str
    cpu: str
    further: tuple[str, ...]
    text: str
    quiet: str

    def of(self, backend: str) -> str:
        return self.cpu if backend == "CPU" else self.accelerator


LIGHT = Palette(
    "#c2410c",
    "#2563a8",
    ("#3f7d4e", "#8a5aa8", "#b58900", "#5f6b7a"),
    "#1f2430",
    "#5f6b7a",
)
DARK = Palette(
    "#f0834a",
    "#6aa9e9",
    ("#7fbf8c", "#c39bd8", "#e0b94a", "#9aa5b4"),
    "#e7e9ec",
    "#9aa5b4",
)

# Accuracy on Fashion-MNIST, from the README of zalandoresearch/fashion-mnist.
REFERENCES = {"people 83.5 %": 0.835, "small CNN 92.5 %": 0.925}
Chart = alt.LayerChart | alt.FacetChart  # what alt.layer answers
Names = tuple[str, ...]  # of the runs on a chart, the newest last
Specification = dict[str, Any]
LATER = alt.UrlData("later")  # stands for the data that comes when a chart is drawn
AXES = {"step": "Step", "epoch": "Epoch", "seconds": "Seconds of training"}


def palette() -> Palette:
    """The colours of the theme that this visitor sees."""
    return DARK if st.context.theme.type == "dark" else LIGHT


def run_colors(names: Names, backend: str, colors: Palette) -> alt.Scale:
    """The newest run has its device's colour; the earlier ones have colours in turn."""
    earlier = [
        colors.further[index % len(colors.further)] for index in range(len(names) - 1)
    ]
    return alt.Scale(domain=list(names), range=[*earlier, colors.of(backend)])


@lru_cache(maxsize=256)
def losses(
    names: Names, backend: str, x: str, most: float | None, colors: Palette
) -> Specification:
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
    return specification(alt.layer(raw, mean).properties(height=300))


@lru_cache(maxsize=256)
def per_epoch(
    names: Names, backend: str, y: str, epochs: int, references: bool, colors: Palette
) -> Specification:
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
    return specification(alt.layer(*layers).properties(height=240))


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


def specification(chart: Chart) -> Specification:
    """Vega-Lite for st.vega_lite_chart, which brings the data.

    Building a chart takes far longer than sending its data: a chart that lives is built
    once, and its specification stays the same while its data changes.
    """

    def without_later(node: Any) -> Any:
        if isinstance(node, dict):
            kept = {k: v for k, v in node.items() if v != LATER.to_dict()}
            return {k: without_later(v) for k, v in kept.items()}
        return (
            [without_later(each) for each in node] if isinstance(node, list) else node
        )

    return without_later(chart.to_dict())


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


def bars(values: dict[str, float], title: str, backend: str) -> Chart:
    """A bar for each name, in the order they come, with its value at the end."""
    colors = palette()
    frame = pd.DataFrame({"name": list(values), "value": list(values.values())})
    most = max(values.values(), default=0.0) or 1.0
    base = alt.Chart(frame).encode(
        y=alt.Y("name:N", sort=list(values), title=None, axis=alt.Axis(labelLimit=160)),
        x=alt.X(
            "value:Q",
            title=title,
            scale=alt.Scale(domain=[0, most * 1.25]),
            axis=alt.Axis(tickCount=4),
        ),
    )
    bar = base.mark_bar(color=colors.of(backend), height=14)
    number = base.mark_text(align="left", dx=5, color=colors.text).encode(
        text=alt.Text("value:Q", format=".3g")
    )
    return alt.layer(bar, number).properties(height=alt.Step(24))


def logits(
    values: np.ndarray, labels: tuple[int, ...], classes: tuple[str, ...]
) -> Chart:
    """Logits (n, classes) as a heat map; a row is an image, its true class framed."""
    frame = pd.DataFrame(
        [
            (f"{row + 1} · {classes[label]}", name, float(value), index == label)
            for row, (logit, label) in enumerate(zip(values, labels, strict=True))
            for index, (name, value) in enumerate(zip(classes, logit, strict=True))
        ],
        columns=["image", "class", "logit", "true"],
    )
    colors = palette()
    most = float(np.abs(values).max()) or 1.0
    base = alt.Chart(frame).encode(
        x=alt.X(
            "class:N", sort=list(classes), title=None, axis=alt.Axis(labelAngle=-40)
        ),
        y=alt.Y("image:N", sort=None, title=None),
        tooltip=["image", "class", alt.Tooltip("logit", format=".3f")],
    )
    ground = "#fdfcfa" if colors is LIGHT else "#14171c"
    shade = alt.Scale(
        domain=[-most, 0, most],
        range=[colors.further[1], ground, colors.further[0]],
        interpolate="rgb",
    )
    cells = base.mark_rect(strokeWidth=2).encode(
        color=alt.Color("logit:Q", scale=shade, legend=None),
        stroke=alt.condition(
            "datum.true", alt.value(colors.text), alt.value("transparent")
        ),
    )
    numbers = base.mark_text(fontSize=11, color=colors.text).encode(
        text=alt.Text("logit:Q", format=".2f")
    )
    return alt.layer(cells, numbers).properties(height=alt.Step(28))


def climb(frame: pd.DataFrame, limits: pd.DataFrame, backend: str) -> Chart:
    """Samples/s of each rung, its spread and how far it is above the first.

    `frame` has the columns rung, speed, low, high, label, kept; `limits` text and
    speed: a dashed line each.
    """
    colors = palette()
    speeds = [*frame["high"], *limits.get("speed", [])]
    base = alt.Chart(frame).encode(
        y=alt.Y(
            "rung:N",
            sort=list(frame["rung"]),
            title=None,
            axis=alt.Axis(labelLimit=180),
        )
    )
    x = alt.X(
        "speed:Q",
        title="Samples/s",
        scale=alt.Scale(domain=[0, max(speeds) * 1.12], nice=False),
        axis=alt.Axis(tickCount=5, format="~s"),
    )
    bars = base.mark_bar(color=colors.of(backend), height=16).encode(
        x=x,
        opacity=alt.condition("datum.kept", alt.value(1), alt.value(0.4)),
        tooltip=[
            alt.Tooltip("rung:N", title="Rung"),
            alt.Tooltip("speed:Q", title="Samples/s", format=",.0f"),
            alt.Tooltip("label:N", title="Over the textbook"),
        ],
    )
    spread = base.mark_rule(color=colors.text).encode(x="low:Q", x2="high:Q")
    label = base.mark_text(align="left", dx=6, color=colors.text).encode(
        x="high:Q", text="label:N"
    )
    layers: list[alt.Chart] = [bars, spread, label]
    for place, (text, speed) in enumerate(limits.itertuples(index=False)):
        at = alt.Chart(pd.DataFrame({"speed": [speed], "text": [text]})).encode(
            x="speed:Q"
        )
        name = at.mark_text(  # one below the other: the lines may be close
            align="right", baseline="top", dx=-5, dy=14 * place, color=colors.quiet
        )
        layers += [
            at.mark_rule(strokeDash=[6, 4], strokeWidth=1.5, color=colors.quiet),
            name.encode(text="text:N", y=alt.value(2)),
        ]
    return alt.layer(*layers).properties(height=alt.Step(28))


def transfers(frame: pd.DataFrame) -> Chart:
    """GB/s over bytes, both logarithmic; a line a kind of memory, a panel a direction.

    `frame` as core.ui.move.transfers.frame makes it. What was recorded is dashed.
    """
    colors = palette()
    kinds = list(dict.fromkeys(frame["memory"]))
    on_host = frame["direction"] == "host to host"
    hues = [
        (colors.cpu if on_host[frame["memory"] == kind].any() else colors.accelerator)
        if kind in ("new memory", "pageable")
        else colors.further[index % len(colors.further)]
        for index, kind in enumerate(kinds)
    ]
    places = list(dict.fromkeys(frame["where"]))
    base = alt.Chart().encode(
        x=alt.X(
            "bytes:Q",
            title="Size of the copy",
            scale=alt.Scale(type="log", base=4, domain=[4096, 2**28]),
            axis=alt.Axis(
                values=[4096 * 16**power for power in range(5)],
                labelExpr="datum.value < 1048576 ? datum.value / 1024 + ' KB' "
                ": datum.value / 1048576 + ' MB'",
            ),
        ),
        color=alt.Color(
            "memory:N",
            scale=alt.Scale(domain=kinds, range=hues),
            legend=alt.Legend(
                title=None, orient="top", symbolOpacity=1, symbolStrokeWidth=3
            ),
        ),
        strokeDash=alt.StrokeDash(
            "where:N",
            scale=alt.Scale(domain=places, range=[[1, 0], *[[6, 4]] * len(places)]),
            legend=alt.Legend(title=None, orient="top") if len(places) > 1 else None,
        ),
    )
    y = alt.Scale(type="log", nice=True)
    band = base.mark_area(opacity=0.18).encode(
        y=alt.Y("low:Q", scale=y), y2=alt.Y2("high:Q")
    )
    line = base.mark_line(point=True, strokeWidth=2.2).encode(
        y=alt.Y("rate:Q", title="GB/s", scale=y),
        tooltip=[
            alt.Tooltip("where:N", title="Measured"),
            alt.Tooltip("direction:N", title="Direction"),
            alt.Tooltip("memory:N", title="Host memory"),
            alt.Tooltip("size:N", title="Size"),
            alt.Tooltip("us:Q", title="Microseconds", format=",.1f"),
            alt.Tooltip("rate:Q", title="GB/s", format=".3g"),
        ],
    )
    panels = list(dict.fromkeys(frame["direction"]))
    if len(panels) == 1:
        return alt.layer(band, line, data=frame).properties(height=300)
    return (
        alt.layer(band, line, data=frame)
        .properties(height=200)
        .facet(row=alt.Row("direction:N", title=None, sort=panels))
    )


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


@lru_cache(maxsize=16)
def share(backend: str, colors: Palette) -> Specification:
    """A thin bar, full at 1, in the colour of the device; for data with `share`."""
    base = alt.Chart(LATER)
    x = alt.X("share:Q", scale=alt.Scale(domain=[0, 1], clamp=True), axis=None)
    ground = base.mark_bar(color=colors.quiet, opacity=0.25, height=8).encode(
        x=alt.value(0), x2=alt.value("width")
    )
    bar = base.mark_bar(color=colors.of(backend), height=8).encode(x=x)
    return specification(alt.layer(ground, bar).properties(height=12))


# The parts of the comparison between training through and resuming.
PARTS = {
    "through": "Trained through",
    "resumed": "Saved, loaded, resumed",
    "weights": "Only the weights loaded",
}


@lru_cache(maxsize=32)
def resumed(backend: str, steps: int, at_step: int, colors: Palette) -> Specification:
    """Training through as a broad band, resuming as a line on it, and the mistake.

    For data with the columns part, step, loss. `at_step` is where it was interrupted.
    """
    scale = alt.Scale(
        domain=list(PARTS.values()),
        range=[colors.of(backend), colors.text, colors.further[0]],
    )
    base = alt.Chart(LATER).encode(
        x=alt.X(
            "step:Q",
            title="Step",
            scale=alt.Scale(domain=[0, steps], nice=False),
            axis=alt.Axis(tickCount=8),
        ),
        y=alt.Y("loss:Q", title="Loss", scale=alt.Scale(zero=False)),
        color=alt.Color(
            "part:N",
            scale=scale,
            legend=alt.Legend(
                title=None,
                orient="top",
                columns=2,
                symbolOpacity=1,
                symbolStrokeWidth=3,
            ),
        ),
        tooltip=[
            alt.Tooltip("part:N", title="Training"),
            alt.Tooltip("step:Q", title="Step", format=",d"),
            alt.Tooltip("loss:Q", title="Loss", format=".6f"),
        ],
    )
    through, again, weights = (
        base.transform_filter(alt.datum.part == name) for name in PARTS.values()
    )
    middle = alt.Data(values=[{"step": at_step, "text": "saved, loaded"}])
    rule = alt.Chart(middle).mark_rule(color=colors.quiet, strokeDash=[4, 4])
    label = alt.Chart(middle).mark_text(
        text="saved, loaded", align="left", dx=6, dy=6, baseline="top", fontSize=11
    )
    return specification(
        alt.layer(
            rule.encode(x="step:Q"),
            through.mark_line(strokeWidth=6, opacity=0.45),
            weights.mark_line(strokeWidth=1.4, opacity=0.9),
            again.mark_line(strokeWidth=1.2),
            label.encode(x="step:Q", y=alt.value(0), color=alt.value(colors.quiet)),
        ).properties(height=300)
    )


def candidate_hues(backends: tuple[str, ...], colors: Palette) -> list[str]:
    """A colour for each of two contenders; the second of one kind has another."""
    first, second = (colors.of(backend) for backend in backends)
    return [first, colors.further[0] if second == first else second]


@lru_cache(maxsize=64)
def race_losses(
    names: Names, backends: tuple[str, ...], x: str, colors: Palette
) -> Specification:
    """The loss of both contenders; the first lies broad under the second."""
    scale = alt.Scale(domain=list(names), range=candidate_hues(backends, colors))
    base = alt.Chart(LATER).encode(
        x=alt.X(f"{x}:Q", title=AXES[x], scale=alt.Scale(zero=True)),
        y=alt.Y("loss:Q", title="Loss", scale=alt.Scale(zero=True)),
        color=alt.Color(
            "contender:N",
            scale=scale,
            legend=alt.Legend(
                title=None, orient="top", symbolOpacity=1, symbolStrokeWidth=3
            ),
        ),
        tooltip=[
            alt.Tooltip("contender:N", title="Contender"),
            alt.Tooltip("step:Q", title="Step"),
            alt.Tooltip("seconds:Q", title="Seconds", format=".3f"),
            alt.Tooltip("loss:Q", title="Loss", format=".5f"),
        ],
    )
    first = base.transform_filter(alt.datum.contender == names[0])
    second = base.transform_filter(alt.datum.contender == names[1])
    return specification(
        alt.layer(
            first.mark_line(strokeWidth=5, opacity=0.45),
            second.mark_line(strokeWidth=1.6),
        ).properties(height=260)
    )


def race_bars(frame: pd.DataFrame, hues: dict[str, str]) -> Chart:
    """Seconds of each contender: median, spread, and its warm-up as a hollow point.

    `frame` has the columns contender, seconds, low, high, warm_up, speed. A contender
    that is not in `hues` was recorded elsewhere: dashed and pale.
    """
    colors = palette()
    names = list(frame["contender"])
    frame = frame.assign(
        recorded=[name not in hues for name in names],
        hue=[hues.get(name, colors.accelerator) for name in names],
    )
    most = frame[["high", "warm_up"]].max().max()
    base = alt.Chart(frame).encode(
        y=alt.Y("contender:N", sort=names, title=None, axis=alt.Axis(labelLimit=170)),
        tooltip=[
            alt.Tooltip("contender:N", title="Contender"),
            alt.Tooltip("seconds:Q", title="Median, s", format=".4g"),
            alt.Tooltip("low:Q", title="Least, s", format=".4g"),
            alt.Tooltip("high:Q", title="Most, s", format=".4g"),
            alt.Tooltip("warm_up:Q", title="Warm-up, s", format=".4g"),
        ],
    )
    x = alt.X("seconds:Q", title="Seconds", scale=alt.Scale(domain=[0, most * 1.5]))
    hue = alt.Color("hue:N", scale=None)
    bar = base.mark_bar(height=16).encode(
        x=x,
        color=hue,
        fillOpacity=alt.condition("datum.recorded", alt.value(0.2), alt.value(1)),
        stroke=alt.Stroke("hue:N", scale=None),
        strokeDash=alt.condition(
            "datum.recorded", alt.value([4, 3]), alt.value([1, 0])
        ),
    )
    spread = base.mark_rule(color=colors.text, strokeWidth=1.5).encode(
        x="low:Q", x2="high:Q"
    )
    ends = [
        base.mark_tick(color=colors.text, size=9).encode(x=end)
        for end in ("low:Q", "high:Q")
    ]
    ground = "#fdfcfa" if colors is LIGHT else "#14171c"
    warm_up = base.mark_point(
        fill=ground, stroke=colors.text, size=45, opacity=1
    ).encode(x="warm_up:Q")
    speed = base.mark_text(align="left", dx=8, color=colors.text).encode(
        x=alt.X("end:Q"), text="speed:N"
    )
    speed = speed.transform_calculate(end="max(datum.high, datum.warm_up || 0)")
    return alt.layer(bar, spread, *ends, warm_up, speed).properties(height=alt.Step(36))


def readings(frame: pd.DataFrame, ways: tuple[str, ...]) -> Chart:
    """Milliseconds of each call, logarithmic; a line a way of timing.

    `frame` has the columns way, call, milliseconds.
    """
    colors = palette()
    hues = [colors.further[index] for index in (1, 2, 0)]
    color = alt.Color(
        "way:N",
        sort=list(ways),
        scale=alt.Scale(domain=list(ways), range=hues),
        legend=alt.Legend(title=None, orient="top"),
    )
    low, high = frame["milliseconds"].min(), frame["milliseconds"].max()
    scale = alt.Scale(type="log", domain=[low / 1.3, high * 1.3], nice=False)
    base = alt.Chart(frame).encode(
        x=alt.X("call:Q", title="Call", axis=alt.Axis(format="d", tickMinStep=1)),
        y=alt.Y("milliseconds:Q", title="Milliseconds", scale=scale),
        color=color,
        tooltip=["way", "call", alt.Tooltip("milliseconds", format=".4g")],
    )
    return alt.layer(
        base.mark_line(strokeWidth=1.5), base.mark_point(filled=True, size=35)
    ).properties(height=260)


def parts(frame: pd.DataFrame, names: tuple[str, ...]) -> Chart:
    """Stacked bars: milliseconds of each part of a step, a bar a feed and device.

    `frame` has the columns bar, part, milliseconds, share, recorded.
    """
    colors = palette()
    lighter = "#9cc4a6" if colors is LIGHT else "#4c7a57"
    hues = [colors.further[2], colors.further[1], colors.further[0]]
    hues += [lighter, colors.further[3]]
    bars = list(dict.fromkeys(frame["bar"]))
    order = {name: index for index, name in enumerate(names)}
    frame = frame.assign(order=[order[part] for part in frame["part"]])
    bar = (
        alt.Chart(frame)
        .mark_bar(height=20)
        .encode(
            y=alt.Y("bar:N", sort=bars, title=None, axis=alt.Axis(labelLimit=190)),
            x=alt.X("milliseconds:Q", title="Milliseconds a step", stack="zero"),
            order="order:Q",
            color=alt.Color(
                "part:N",
                sort=list(names),
                scale=alt.Scale(domain=list(names), range=hues),
                legend=alt.Legend(title=None, orient="top", columns=3),
            ),
            opacity=alt.condition("datum.recorded", alt.value(0.5), alt.value(1)),
            tooltip=[
                alt.Tooltip("bar:N", title="Step"),
                alt.Tooltip("part:N", title="Part"),
                alt.Tooltip("milliseconds:Q", title="Milliseconds", format=".3g"),
                alt.Tooltip("share:Q", title="Of the step", format=".0%"),
            ],
        )
    )
    return alt.layer(bar).properties(height=alt.Step(40))


def crossover(
    frame: pd.DataFrame, points: pd.DataFrame, hues: list[str], most: float
) -> Chart:
    """Speed-up of the second contender over batch size and width, as a heat map.

    `frame` has the columns batch, width (both as powers of two), log2, label, tooltip
    columns; `points` x, y, in powers of two too. `most` is the largest |log2|.
    """
    colors = palette()
    ground = "#f4f1ec" if colors is LIGHT else "#1d2229"
    frame = frame.assign(
        x0=frame["batch"] - 0.5,
        x1=frame["batch"] + 0.5,
        y0=frame["width"] - 0.5,
        y1=frame["width"] + 0.5,
    )
    powers = alt.Axis(
        labelExpr="format(pow(2, datum.value), '.0f')", tickMinStep=1, grid=False
    )

    def axis(first: str, title: str, low: float, high: float, channel: Any) -> Any:
        scale = alt.Scale(domain=[low, high], nice=False, zero=False)
        return channel(first, title=title, axis=powers, scale=scale)

    x = axis("x0:Q", "Batch size", 3.5, 12.5, alt.X)
    y = axis("y0:Q", "Hidden units", 4.5, 12.5, alt.Y)
    base = alt.Chart(frame)
    cells = base.mark_rect(stroke=ground, strokeWidth=1).encode(
        x=x,
        x2="x1:Q",
        y=y,
        y2="y1:Q",
        color=alt.Color(
            "log2:Q",
            legend=None,
            scale=alt.Scale(
                domain=[-most, 0, most],
                range=[hues[0], ground, hues[1]],
                interpolate="rgb",
            ),
        ),
        tooltip=[
            alt.Tooltip("batch_size:Q", title="Batch size"),
            alt.Tooltip("hidden:Q", title="Hidden units"),
            alt.Tooltip("label:N", title="Times as fast"),
            alt.Tooltip("interval:N", title="Least to most"),
        ],
    )
    # Below the middle, where the line of equality may pass.
    numbers = base.mark_text(fontSize=10, dy=9).encode(
        x="batch:Q",
        y="width:Q",
        text="label:N",
        color=alt.condition(
            f"abs(datum.log2) > {most} * 0.6",
            alt.value("#ffffff" if colors is LIGHT else "#14171c"),
            alt.value(colors.text),
        ),
    )
    layers = [cells, numbers]
    if not points.empty:
        rows = alt.Chart(points)
        crossings = rows.mark_point(
            shape="diamond", filled=True, size=50, color=colors.text, opacity=1
        )
        layers.append(crossings.encode(x="x:Q", y="y:Q"))
        line = rows.transform_filter("datum.joined").mark_line(
            color=colors.text, strokeWidth=2, strokeDash=[5, 3]
        )
        layers.append(line.encode(x="x:Q", y="y:Q", order="y:Q"))
    return alt.layer(*layers).properties(height=340)


FIT_POINTS = 500  # of the training set; more would be a cloud without a middle
TRUTH, MODEL = "The curve without noise", "The model"


@lru_cache(maxsize=32)
def fit(backend: str, colors: Palette) -> Specification:
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
    return specification(alt.layer(*layers).properties(height=320))
