"""The charts of the Compare page."""

import json
from math import log2

import altair as alt
import pandas as pd

from core.compare.candidates import Candidate
from core.compare.results import BATCH_SIZES, PARTS, WIDTHS
from core.ui.charts import base
from core.ui.charts.base import (
    AXES,
    FONT_PIXELS,
    LATER,
    LINES,
    MIDDLE,
    TALL,
    Chart,
    Palette,
)

Pair = tuple[Candidate, Candidate]
MOST = 2.0  # times as fast; what is more has the same shade
LONGEST = "1,000,000 images/s"  # of the texts at the end of a bar


def candidate_hues(pair: Pair, colors: Palette) -> list[str]:
    """A colour for each of two contenders; the second of one kind has another."""
    first, second = (colors.of(each.backend) for each in pair)
    return [first, colors.further[1] if second == first else second]


@base.live
def race_losses(colors: Palette, pair: Pair, x: str) -> Chart:
    """The loss of both contenders; the first lies broad under the second."""
    names = [each.name for each in pair]
    shown = candidate_hues(pair, colors)
    chart = alt.Chart(LATER).encode(
        x=alt.X(f"{x}:Q").title(AXES[x]).scale(zero=True, nice=False),
        y=alt.Y("loss:Q").title("Training loss").scale(domainMin=0),
        color=base.hues("contender", names, shown, **LINES),
        tooltip=base.tips(contender="Contender", step="Step")
        + base.tips(".3f", seconds="Seconds")
        + base.tips(".5f", loss="Loss"),
    )
    first, second = (
        chart.transform_filter(alt.datum.contender == name) for name in names
    )
    broad = base.lines(first, 5, opacity=0.45)
    return alt.layer(broad, base.lines(second, 1.6)).properties(height=MIDDLE)


@base.live
def race_bars(
    colors: Palette, pair: Pair, elsewhere: tuple[str, ...], title: str
) -> Chart:
    """The seconds of each heat as dots, hollow for the warm-up, over their median.

    For data with the columns contender, kind ("median", "heat" or "warm-up"), seconds,
    and text, right of all dots. Contenders from `elsewhere` are dashed and pale.
    """
    names = [*(each.name for each in pair), *elsewhere]
    hues = [*candidate_hues(pair, colors), *[colors.accelerator] * len(elsewhere)]
    axis = alt.Axis(labelLimit=200, labelColor=colors.text)
    x, room = alt.X("seconds:Q").title(title), base.before([LONGEST])
    chart = alt.Chart(LATER).encode(
        y=alt.Y("contender:N").title(None).scale(domain=names).axis(axis),
        x=x.scale(zero=True, nice=False, range=room).axis(format="~r"),
        tooltip=base.tips(contender="Contender", kind="What")
        + base.tips(".4g", seconds="Seconds"),
    )
    bar, heat, warm_up, end = (
        chart.transform_filter(alt.datum.kind == kind)
        for kind in ("median", "heat", "warm-up", "end")
    )
    recorded = f"indexof({json.dumps(elsewhere)}, datum.contender) >= 0"
    color = alt.Color("contender:N").scale(domain=names, range=hues).legend(None)
    bars = bar.mark_bar(height=16).encode(
        color=color,
        fillOpacity=base.either(recorded, 0.2, 1),
        stroke=alt.Stroke("contender:N").scale(domain=names, range=hues).legend(None),
        strokeDash=base.either(recorded, [4, 3], [1, 0]),
    )
    dot: dict = {"stroke": colors.text, "size": 40, "opacity": 1, "strokeWidth": 1}
    return alt.layer(
        bars,
        heat.mark_point(fill=colors.quiet, **dot),
        warm_up.mark_point(fill=colors.page, **dot),
        end.mark_text(align="right").encode(x=alt.value("width"), text="text:N"),
    ).properties(height=alt.Step(38))


def readings(frame: pd.DataFrame, wrong: dict[str, bool]) -> Chart:
    """Milliseconds of each call, logarithmic; a line a way of timing.

    `frame` has the columns way, call, milliseconds; `wrong` tells by each way's name,
    in order, whether what it reports is. The last one is the truth.
    """
    colors = base.palette()
    low, high = frame["milliseconds"].min() / 1.3, frame["milliseconds"].max() * 1.3
    fine = (
        (colors.cpu, "square"),
        (colors.quiet, "triangle-up"),
        (colors.right, "circle"),
    )
    looks = [
        (colors.wrong, "cross") if wrong[way] else look
        for way, look in zip(wrong, fine, strict=False)
    ]
    hues, shapes = zip(*looks, strict=True)
    calls = int(frame["call"].max())
    x = alt.X("call:Q").title("Call").scale(domain=[1, max(2, calls)], nice=False)
    y = alt.Y("milliseconds:Q").title("Milliseconds, logarithmic")
    shape = alt.Shape("way:N").scale(domain=list(wrong), range=list(shapes))
    chart = alt.Chart(frame).encode(
        x=x.axis(base.ticks(base.whole(calls), format="d")),
        y=y.scale(type="log", domain=[low, high], nice=False).axis(
            base.ticks(base.decades(low, high), format="~g")
        ),
        color=base.hues("way", wrong, hues, **LINES, columns=2),
        tooltip=["way", "call", alt.Tooltip("milliseconds").format(".4g")],
    )
    points = chart.mark_point(filled=True, size=55, opacity=1)
    legend = alt.Legend(title=None, orient="top", columns=2)
    return alt.layer(
        base.lines(chart, 1.2, opacity=0.6),
        points.encode(shape=shape.legend(legend)),
    ).properties(height=MIDDLE)


def lanes(frame: pd.DataFrame, clocks: pd.DataFrame) -> Chart:
    """When each part of a step went on, a lane each for what asks and what works.

    `frame` has the columns lane, part, start, end, in milliseconds, share and recorded;
    `clocks` lane, at, text and wrong: what a stopwatch reads that is stopped there.
    """
    colors = base.palette()
    tooltip = base.tips(lane="Lane", part="Part")
    tooltip += base.tips(".3g", start="From, ms", end="To, ms")
    names = list(dict.fromkeys(frame["lane"]))
    axis = alt.Axis(labelLimit=200, labelColor=colors.text)
    lane = alt.Y("lane:N").title(None).scale(domain=names).axis(axis)
    x = alt.X("start:Q").title("Milliseconds since the step began")
    most = max(frame["end"].max(), clocks["at"].max())
    room = base.before(clocks["text"])
    bars = (
        alt.Chart(frame)
        .mark_bar(height=18)
        .encode(
            x=x.scale(domain=[0, most], nice=False, range=room),
            x2="end:Q",
            y=lane,
            color=base.hues("part", PARTS, colors.runs, columns=3),
            opacity=base.either("datum.recorded", 0.5, 1),
            tooltip=tooltip,
        )
    )
    clock = alt.Chart(clocks).encode(x="at:Q", y=lane)
    ink = base.either("datum.wrong", colors.wrong, colors.text)
    stop = clock.mark_tick(height=28, thickness=2).encode(color=ink)
    text = clock.mark_text(align="left", dx=6).encode(text="text:N", color=ink)
    return alt.layer(bars, stop, text).properties(height=alt.Step(36))


@base.live
def crossover(colors: Palette, pair: Pair) -> Chart:
    """Speed-up of the second contender over batch size and width, as a heat map.

    For data with the columns kind, batch, width, left, right, bottom and top (all as
    powers of two), log2, label, joined, and what tooltips tell. Of the kinds, a "cell"
    is measured, a "blank" has the shade of the nearest that is, but pale, a "tie" is a
    line of a hatching, and "equal" a place where both are equally fast.
    """
    ends = [base.mixed(hue, colors.ground, 0.5) for hue in candidate_hues(pair, colors)]
    shade = base.shades(
        "log2",
        ends[0],
        colors.ground,
        ends[1],
        domain=[-log2(MOST), 0, log2(MOST)],
        clamp=True,
    )
    powers: dict = {"labelExpr": "format(pow(2, datum.value), ',.0f')", "grid": False}
    sides = {
        side: channel(f"{column}:Q", axis=base.ticks(map(log2, values), **powers))
        .title(title)
        .scale(domain=[log2(values[0]) - 0.5, log2(values[-1]) + 0.5], nice=False)
        for side, channel, column, values, title in (
            ("x", alt.X, "left", BATCH_SIZES, "Batch size"),
            ("y", alt.Y, "bottom", WIDTHS, "Hidden units"),
        )
    }
    edges: dict = {**sides, "x2": "right:Q", "y2": "top:Q"}
    blank, cell, tie, equal = (
        alt.Chart(LATER).transform_filter(alt.datum.kind == kind)
        for kind in ("blank", "cell", "tie", "equal")
    )
    tooltip = base.tips(batch_size="Batch size", hidden="Hidden units")
    tooltip += base.tips(label="Times as fast", interval="Least to most")
    cells = base.heat_map(
        cell.encode(x="batch:Q", y="width:Q", tooltip=tooltip),
        shade,
        "label:N",
        colors,
        size=FONT_PIXELS,
        dy=9,  # below the middle, where the line of equality may pass
        aria=False,
        **edges,
        stroke=alt.value(colors.page),
    )
    diamonds = equal.mark_point(
        shape="diamond", filled=True, size=50, opacity=1, aria=False
    )
    line = equal.transform_filter("datum.joined").encode(order="bottom:Q")
    dashed = line.mark_line(
        color=colors.text, strokeWidth=2, strokeDash=[5, 3], aria=False
    )
    return alt.layer(
        blank.mark_rect(opacity=0.35, aria=False).encode(color=shade, **edges),
        cells,
        tie.mark_rule(color=colors.quiet, opacity=0.5, aria=False).encode(**edges),
        diamonds.encode(**sides, color=alt.value(colors.text)),
        dashed.encode(**sides),
    ).properties(height=TALL)
