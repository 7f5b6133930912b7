"""The charts of the Speed page."""

import altair as alt
import pandas as pd

from core.speed.results import NUMPY, PYTHON, TORCH
from core.ui.charts import base
from core.ui.charts.base import LATER, Chart, Palette

# Microseconds on a logarithmic axis, as people say them.
TIMES = base.ticks(
    (10.0**power for power in range(-1, 9)),
    labelExpr="datum.value < 1000 ? format(datum.value, '~r') + ' µs' : "
    "datum.value < 1000000 ? format(datum.value / 1000, '~r') + ' ms' : "
    "format(datum.value / 1000000, '~r') + ' s'",
)


def waterfall(frame: pd.DataFrame, backend: str) -> Chart:
    """What each rung takes off an epoch: a bar from what was left to what is left.

    `frame` has the columns rung, left and before, in seconds, label, and whole, which
    says whether the bar is all of an epoch and not what was taken off it.
    """
    colors = base.palette()
    hue = colors.of(backend)
    x = alt.X("left:Q").title("Seconds of an epoch").axis(format="~r")
    room = base.before(frame["label"])
    x = x.scale(domain=[0, frame["before"].max()], nice=False, range=room)
    rows = base.rows(frame, "rung", tooltip=base.tips(rung="Rung", label="Seconds"))
    bar = rows.mark_bar(height=16, stroke=hue, strokeWidth=1.5).encode(
        x=x,
        x2="before:Q",
        fill=base.either("datum.whole", hue, colors.page),
    )
    text = rows.mark_text(align="left", dx=8).encode(x="before:Q", text="label:N")
    return alt.layer(bar, text).properties(height=alt.Step(26))


@base.live
def loader(colors: Palette, rows: tuple[str, ...], workers: tuple[int, ...]) -> Chart:
    """Samples/s as a heat map of `rows`, which are batch sizes, and workers.

    For data with the columns row, workers, rate, label, spread, start, and dark, which
    says whether the cell is. What is not measured yet stays empty.
    """
    across = alt.X("workers:O").title("Workers").scale(domain=list(workers))
    down = alt.Y("row:N").title("Batch size").scale(domain=list(rows))
    chart = alt.Chart(LATER).encode(
        x=across.axis(labelAngle=0),
        y=down.sort(None),
        tooltip=base.tips(row="Batch size", workers="Workers")
        + base.tips(",.0f", rate="Samples/s")
        + base.tips(spread="Least to most", start="To the first batch"),
    )
    shade = base.shades("rate", colors.low, colors.cpu, domainMin=0, zero=True)
    cells = base.heat_map(chart, shade, "label:N", colors, "datum.dark", size=12)
    return cells.properties(height=alt.Step(40))


def memory(frame: pd.DataFrame, backend: str) -> Chart:
    """Time against peak memory: a point a way, with its name.

    `frame` has the columns kind, name, milliseconds, low, high, megabytes, below; the
    last says on which side of the point its name is.
    """
    colors = base.palette()
    shown = (colors.of(backend), colors.further[1])
    kinds = dict.fromkeys(frame["kind"])
    x = alt.X("milliseconds:Q").title("Milliseconds").axis(tickCount=6)
    y = alt.Y("megabytes:Q").title("Peak memory, MB").axis(tickCount=6)
    times = {"milliseconds": "Median, ms", "low": "Least, ms", "high": "Most, ms"}
    chart = alt.Chart(frame).encode(
        x=x.scale(domain=[0, frame["high"].max() * 1.2], nice=False),
        y=y.scale(domain=[0, frame["megabytes"].max() * 1.2], nice=False),
        color=base.hues("kind", kinds, shown, symbolOpacity=1),
        tooltip=base.tips(kind="What", name="Way")
        + base.tips(".4g", **times, megabytes="Peak, MB"),
    )
    points = chart.mark_point(filled=True, size=110, opacity=1)
    names = [
        chart.transform_filter(alt.datum.below == below)
        .mark_text(dy=dy, fontSize=12)
        .encode(text="name:N", color=alt.value(colors.text))
        for below, dy in ((False, -14), (True, 17))
    ]
    return alt.layer(
        chart.mark_rule(strokeWidth=1.5).encode(x="low:Q", x2="high:Q"),
        points.encode(shape=alt.Shape("kind:N").legend(None)),
        *names,
    ).properties(height=320)


def vectorized(frame: pd.DataFrame) -> Chart:
    """A dot a way for each number of points, over logarithmic time.

    `frame` has the columns points (in words), way, microseconds, low, high, time.
    """
    colors = base.palette()
    known = {PYTHON: colors.further[3], NUMPY: colors.further[0], TORCH: colors.cpu}
    hues = {way: known.get(way, colors.accelerator) for way in frame["way"]}
    domain = [frame["low"].min() / 2, frame["high"].max()]
    x = alt.X("microseconds:Q", axis=TIMES).scale(type="log", domain=domain, nice=False)
    rows = alt.Chart(frame).encode(
        y=alt.Y("points:N").sort(None).title(None).scale(paddingInner=0.25),
        yOffset=alt.YOffset("way:N").sort(list(hues)),
        tooltip=base.tips(points="Size", way="Way") + _middle_half("µs"),
    )
    return base.dots(
        rows,
        x.title("Time, logarithmic"),
        "time:N",
        20,
        color=base.hues("way", hues, hues.values(), columns=2),
    )


def _middle_half(unit: str) -> list[alt.Tooltip]:
    ends = {"low": f"Middle half from, {unit}", "high": f"to, {unit}"}
    return base.tips(time="Median") + base.tips(".4g", **ends)


def pieces(frame: pd.DataFrame, backend: str) -> Chart:
    """Time over the number of pieces that the same bytes are copied in, both log.

    `frame` has the columns pieces, microseconds, low, high, time.
    """
    colors = base.palette()
    right = frame["pieces"].max() * 3
    ends = [frame["low"].min() / 1.5, frame["high"].max() * 2.5]
    x = alt.X("pieces:Q").title("Pieces")
    y = alt.Y("microseconds:Q", axis=TIMES).title("Time")
    chart = alt.Chart(frame).encode(
        x=x.scale(type="log", domain=[0.4, right], nice=False).axis(
            base.ticks(frame["pieces"], format=",d")
        ),
        y=y.scale(type="log", domain=ends, nice=False),
        color=alt.value(colors.of(backend)),
        tooltip=base.tips(",d", pieces="Pieces") + _middle_half("µs"),
    )
    times = chart.mark_text(dy=-14).encode(text="time:N", color=alt.value(colors.text))
    curve = base.lines(chart, points=50, band=True)
    return (curve + times).properties(height=260)


def fetches(frame: pd.DataFrame, backend: str) -> Chart:
    """A bar a way to fetch numbers from the device.

    `frame` has the columns way, milliseconds, low, high, time.
    """
    tooltip = base.tips(way="Way") + _middle_half("ms")
    return base.bars(
        base.rows(frame, "way", limit=190, tooltip=tooltip),
        alt.X("milliseconds:Q").title("Milliseconds"),
        "time:N",
        color=alt.value(base.palette().of(backend)),
    )
