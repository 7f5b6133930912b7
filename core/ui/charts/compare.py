"""The charts of the Compare page."""

from typing import Any

import altair as alt
import pandas as pd

from core.ui.charts.base import AXES, LATER, LIGHT, Chart, Names, Palette, live, palette


def candidate_hues(backends: tuple[str, ...], colors: Palette) -> list[str]:
    """A colour for each of two contenders; the second of one kind has another."""
    first, second = (colors.of(backend) for backend in backends)
    return [first, colors.further[0] if second == first else second]


@live
def race_losses(colors: Palette, names: Names, backends: Names, x: str) -> Chart:
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
    return alt.layer(
        first.mark_line(strokeWidth=5, opacity=0.45),
        second.mark_line(strokeWidth=1.6),
    ).properties(height=260)


def race_bars(frame: pd.DataFrame, names: Names, backends: Names) -> Chart:
    """Seconds of each contender: median, spread, and its warm-up as a hollow point.

    `frame` has the columns contender, seconds, low, high, warm_up, speed. A contender
    that is not in `names` was recorded elsewhere: dashed and pale.
    """
    colors = palette()
    known = dict(zip(names, candidate_hues(backends, colors), strict=True))
    bars = list(frame["contender"])
    frame = frame.assign(
        recorded=[name not in known for name in bars],
        hue=[known.get(name, colors.accelerator) for name in bars],
    )
    most = frame[["high", "warm_up"]].max().max()
    base = alt.Chart(frame).encode(
        y=alt.Y("contender:N", sort=bars, title=None, axis=alt.Axis(labelLimit=170)),
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
    frame: pd.DataFrame, points: pd.DataFrame, backends: Names, most: float
) -> Chart:
    """Speed-up of the second contender over batch size and width, as a heat map.

    `frame` has the columns batch, width (both as powers of two), log2, label, tooltip
    columns; `points` x, y, in powers of two too. `most` is the largest |log2|.
    """
    colors = palette()
    hues = candidate_hues(backends, colors)
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
