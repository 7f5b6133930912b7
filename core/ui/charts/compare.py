"""The charts of the Compare page."""

import altair as alt
import pandas as pd

from core.compare.candidates import Candidate
from core.ui.charts import base
from core.ui.charts.base import AXES, LATER, LINES, Chart, Palette

Pair = tuple[Candidate, Candidate]


def candidate_hues(pair: Pair, colors: Palette) -> list[str]:
    """A colour for each of two contenders; the second of one kind is lighter."""
    first, second = (colors.of(each.backend) for each in pair)
    again = colors.again[second == colors.accelerator]
    return [first, again if second == first else second]


@base.live
def race_losses(colors: Palette, pair: Pair, x: str) -> Chart:
    """The loss of both contenders; the first lies broad under the second."""
    names = [each.name for each in pair]
    shown = candidate_hues(pair, colors)
    chart = alt.Chart(LATER).encode(
        x=alt.X(f"{x}:Q").title(AXES[x]).scale(zero=True),
        y=alt.Y("loss:Q").title("Loss"),
        color=base.hues("contender", names, shown, **LINES),
        tooltip=base.tips(contender="Contender", step="Step")
        + base.tips(".3f", seconds="Seconds")
        + base.tips(".5f", loss="Loss"),
    )
    first, second = (
        chart.transform_filter(alt.datum.contender == name) for name in names
    )
    broad = base.lines(first, 5, opacity=0.45)
    return alt.layer(broad, base.lines(second, 1.6)).properties(height=260)


def race_bars(frame: pd.DataFrame, pair: Pair) -> Chart:
    """Seconds of each contender: median, spread, and its warm-up as a hollow point.

    `frame` has the columns contender, seconds, low, high, warm_up, speed. A contender
    that is not of the `pair` was recorded elsewhere: dashed and pale.
    """
    colors = base.palette()
    names = [each.name for each in pair]
    known = dict(zip(names, candidate_hues(pair, colors), strict=True))
    frame = frame.assign(
        recorded=~frame["contender"].isin(names),
        hue=[known.get(name, colors.accelerator) for name in frame["contender"]],
        end=frame[["high", "warm_up"]].max(axis=1),
    )
    seconds = {"seconds": "Median, s", "low": "Least, s", "high": "Most, s"}
    tooltip = base.tips(contender="Contender")
    tooltip += base.tips(".4g", **seconds, warm_up="Warm-up, s")
    rows = base.rows(frame, "contender", limit=170, tooltip=tooltip)
    tick = rows.mark_tick(color=colors.text, size=9)
    hollow = rows.mark_point(fill=colors.page, stroke=colors.text, size=45, opacity=1)
    x = alt.X("seconds:Q").title("Seconds")
    bars = base.bars(
        rows,
        x.scale(domain=[0, frame["end"].max() * 1.5]),
        "speed:N",
        36,
        dx=8,
        color=alt.Color("hue:N").scale(None),
        fillOpacity=base.either("datum.recorded", 0.2, 1),
        stroke=alt.Stroke("hue:N").scale(None),
        strokeDash=base.either("datum.recorded", [4, 3], [1, 0]),
    )
    ends = (tick.encode(x="low:Q"), tick.encode(x="high:Q"))
    return alt.layer(bars, *ends, hollow.encode(x="warm_up:Q"))


def readings(frame: pd.DataFrame, ways: tuple[str, ...]) -> Chart:
    """Milliseconds of each call, logarithmic; a line a way of timing.

    `frame` has the columns way, call, milliseconds.
    """
    colors = base.palette()
    low, high = frame["milliseconds"].min() / 1.3, frame["milliseconds"].max() * 1.3
    y = alt.Y("milliseconds:Q").title("Milliseconds")
    chart = alt.Chart(frame).encode(
        x=alt.X("call:Q").title("Call").axis(format="d", tickMinStep=1),
        y=y.scale(type="log", domain=[low, high], nice=False),
        color=base.hues("way", ways, [colors.further[index] for index in (1, 2, 0)]),
        tooltip=["way", "call", alt.Tooltip("milliseconds").format(".4g")],
    )
    return base.lines(chart, 1.5, points=35).properties(height=260)


def parts(frame: pd.DataFrame, names: tuple[str, ...]) -> Chart:
    """Stacked bars: milliseconds of each part of a step, a bar a feed and device.

    `frame` has the columns bar, part, milliseconds, share, recorded.
    """
    colors = base.palette()
    green, purple, yellow, gray = colors.further
    shown = (yellow, purple, green, colors.pale, gray)
    tooltip = base.tips(bar="Step", part="Part")
    tooltip += base.tips(".3g", milliseconds="Milliseconds")
    tooltip += base.tips(".0%", share="Of the step")
    frame = frame.assign(order=frame["part"].map(names.index))
    rows = base.rows(frame, "bar", limit=190, tooltip=tooltip)
    bars = rows.mark_bar(height=20).encode(
        x=alt.X("milliseconds:Q").title("Milliseconds a step").stack("zero"),
        order="order:Q",
        color=base.hues("part", names, shown, columns=3),
        opacity=base.either("datum.recorded", 0.5, 1),
    )
    return alt.layer(bars).properties(height=alt.Step(40))


def crossover(frame: pd.DataFrame, points: pd.DataFrame, pair: Pair) -> Chart:
    """Speed-up of the second contender over batch size and width, as a heat map.

    `frame` has the columns batch, width (both as powers of two), log2, label, tooltip
    columns; `points` x, y, in powers of two too.
    """
    colors = base.palette()
    first, second = candidate_hues(pair, colors)
    most = max(1.0, frame["log2"].abs().max())
    powers = alt.Axis(
        labelExpr="format(pow(2, datum.value), '.0f')", tickMinStep=1, grid=False
    )
    frame = frame.assign(
        left=frame["batch"] - 0.5,
        right=frame["batch"] + 0.5,
        bottom=frame["width"] - 0.5,
        top=frame["width"] + 0.5,
    )
    tooltip = base.tips(batch_size="Batch size", hidden="Hidden units")
    tooltip += base.tips(label="Times as fast", interval="Least to most")
    x, y = alt.X("left:Q", axis=powers), alt.Y("bottom:Q", axis=powers)
    cells = base.heat_map(
        alt.Chart(frame).encode(x="batch:Q", y="width:Q", tooltip=tooltip),
        base.shades("log2", first, colors.ground, second, domain=[-most, 0, most]),
        "label:N",
        colors,
        f"abs(datum.log2) > {most} * 0.6",
        size=10,
        dy=9,  # below the middle, where the line of equality may pass
        x=x.title("Batch size").scale(domain=[3.5, 12.5], nice=False, zero=False),
        x2="right:Q",
        y=y.title("Hidden units").scale(domain=[4.5, 12.5], nice=False, zero=False),
        y2="top:Q",
        stroke=alt.value(colors.ground),
        strokeWidth=alt.value(1),
    ).properties(height=340)
    if points.empty:
        return cells
    crossings = alt.Chart(points).encode(x="x:Q", y="y:Q")
    diamonds = crossings.mark_point(shape="diamond", filled=True, size=50, opacity=1)
    line = crossings.transform_filter("datum.joined").encode(order="y:Q")
    dashed = line.mark_line(color=colors.text, strokeWidth=2, strokeDash=[5, 3])
    return cells + diamonds.encode(color=alt.value(colors.text)) + dashed
