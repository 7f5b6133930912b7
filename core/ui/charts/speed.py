"""The charts of the Speed page."""

import altair as alt
import pandas as pd

from core.speed.results import CPU, ITEM, NUMPY, ONCE, PYTHON, TORCH
from core.ui.charts.base import (
    LATER,
    LIGHT,
    Chart,
    Palette,
    live,
    palette,
)


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


@live
def loader(colors: Palette, rows: tuple[str, ...], workers: tuple[int, ...]) -> Chart:
    """Samples/s as a heat map of `rows`, which are batch sizes, and workers.

    For data with the columns row, workers, rate, label, spread, start, and dark, which
    says whether the cell is. What is not measured yet stays empty.
    """
    ground = "#e9e4da" if colors is LIGHT else "#232a33"
    base = alt.Chart(LATER).encode(
        x=alt.X(
            "workers:O",
            title="Workers",
            scale=alt.Scale(domain=list(workers)),
            axis=alt.Axis(labelAngle=0),
        ),
        y=alt.Y(
            "row:N", title="Batch size", sort=None, scale=alt.Scale(domain=list(rows))
        ),
    )
    cells = base.mark_rect().encode(
        color=alt.Color(
            "rate:Q",
            legend=None,
            scale=alt.Scale(
                domainMin=0, range=[ground, colors.cpu], interpolate="rgb", zero=True
            ),
        ),
        tooltip=[
            alt.Tooltip("row:N", title="Batch size"),
            alt.Tooltip("workers:O", title="Workers"),
            alt.Tooltip("rate:Q", title="Samples/s", format=",.0f"),
            alt.Tooltip("spread:N", title="Least to most"),
            alt.Tooltip("start:N", title="To the first batch"),
        ],
    )
    numbers = base.mark_text(fontSize=12).encode(
        text="label:N",
        color=alt.condition(
            "datum.dark",
            alt.value("#ffffff" if colors is LIGHT else "#14171c"),
            alt.value(colors.text),
        ),
    )
    return alt.layer(cells, numbers).properties(height=alt.Step(40))


def memory(frame: pd.DataFrame, backend: str) -> Chart:
    """Time against peak memory: a point a way, with its name.

    `frame` has the columns kind, name, milliseconds, low, high, megabytes, below; the
    last says on which side of the point its name is.
    """
    colors = palette()
    kinds = list(dict.fromkeys(frame["kind"]))
    base = alt.Chart(frame).encode(
        x=alt.X(
            "milliseconds:Q",
            title="Milliseconds",
            scale=alt.Scale(domain=[0, frame["high"].max() * 1.2], nice=False),
            axis=alt.Axis(tickCount=6),
        ),
        y=alt.Y(
            "megabytes:Q",
            title="Peak memory, MB",
            scale=alt.Scale(domain=[0, frame["megabytes"].max() * 1.2], nice=False),
            axis=alt.Axis(tickCount=6),
        ),
        color=alt.Color(
            "kind:N",
            scale=alt.Scale(
                domain=kinds, range=[colors.of(backend), colors.further[1]]
            ),
            legend=alt.Legend(title=None, orient="top", symbolOpacity=1),
        ),
        tooltip=[
            alt.Tooltip("kind:N", title="What"),
            alt.Tooltip("name:N", title="Way"),
            alt.Tooltip("milliseconds:Q", title="Median, ms", format=".4g"),
            alt.Tooltip("low:Q", title="Least, ms", format=".4g"),
            alt.Tooltip("high:Q", title="Most, ms", format=".4g"),
            alt.Tooltip("megabytes:Q", title="Peak, MB", format=".4g"),
        ],
    )
    points = base.mark_point(filled=True, size=110, opacity=1).encode(
        shape=alt.Shape("kind:N", legend=None)
    )
    spread = base.mark_rule(strokeWidth=1.5).encode(x="low:Q", x2="high:Q")
    names = [
        base.transform_filter(alt.datum.below == below)
        .mark_text(dy=dy, fontSize=12)
        .encode(text="name:N", color=alt.value(colors.text))
        for below, dy in ((False, -14), (True, 17))
    ]
    return alt.layer(spread, points, *names).properties(height=320)


def way_hue(way: str, colors: Palette) -> str:
    """Blue is torch on the CPU, orange torch on an accelerator."""
    known = {PYTHON: colors.further[3], NUMPY: colors.further[0], TORCH: colors.cpu}
    return known.get(way, colors.accelerator)


def vectorized(frame: pd.DataFrame) -> Chart:
    """A bar a way for each number of points, over logarithmic time.

    `frame` has the columns points (in words), way, microseconds, low, high, time. The
    bars begin at the lower end of the axis: a logarithmic one has no 0.
    """
    colors = palette()
    ways = list(dict.fromkeys(frame["way"]))
    start = frame["low"].min() / 2
    frame = frame.assign(start=start)
    scale = alt.Scale(type="log", domain=[start, frame["high"].max() * 8], nice=False)
    base = alt.Chart(frame).encode(
        y=alt.Y("points:N", sort=None, title=None, scale=alt.Scale(paddingInner=0.25)),
        yOffset=alt.YOffset("way:N", sort=ways),
        tooltip=[
            alt.Tooltip("points:N", title="Size"),
            alt.Tooltip("way:N", title="Way"),
            alt.Tooltip("time:N", title="Median"),
            alt.Tooltip("low:Q", title="Middle half from, µs", format=".4g"),
            alt.Tooltip("high:Q", title="to, µs", format=".4g"),
        ],
    )
    x = alt.X(
        "microseconds:Q",
        title="Time, each line ten times the one before",
        scale=scale,
        axis=alt.Axis(values=[10.0**power for power in range(-1, 9)], labelExpr=UNITS),
    )
    bars = base.mark_bar().encode(
        x=x,
        x2="start:Q",
        color=alt.Color(
            "way:N",
            scale=alt.Scale(domain=ways, range=[way_hue(way, colors) for way in ways]),
            legend=alt.Legend(title=None, orient="top", columns=2),
        ),
    )
    spread = base.mark_rule(color=colors.text).encode(x="low:Q", x2="high:Q")
    times = base.mark_text(align="left", dx=6, color=colors.text).encode(
        x="high:Q", text="time:N"
    )
    return alt.layer(bars, spread, times).properties(height=alt.Step(20))


# Microseconds, as people say them.
UNITS = (
    "datum.value < 1000 ? format(datum.value, '~r') + ' µs' : datum.value < 1000000 ? "
    "format(datum.value / 1000, '~r') + ' ms' : format(datum.value / 1000000, '~r') + "
    "' s'"
)


def pieces(frame: pd.DataFrame, backend: str) -> Chart:
    """Time over the number of pieces that the same bytes are copied in, both log.

    `frame` has the columns pieces, microseconds, low, high, time.
    """
    colors = palette()
    hue = colors.of(backend)
    scale = alt.Scale(
        type="log",
        domain=[frame["low"].min() / 1.5, frame["high"].max() * 2.5],
        nice=False,
    )
    base = alt.Chart(frame).encode(
        x=alt.X(
            "pieces:Q",
            title="Pieces",
            scale=alt.Scale(
                type="log", domain=[0.7, frame["pieces"].max() * 3], nice=False
            ),
            axis=alt.Axis(values=list(frame["pieces"]), format=",d", grid=False),
        ),
        y=alt.Y(
            "microseconds:Q",
            title="Time",
            scale=scale,
            axis=alt.Axis(
                values=[10.0**power for power in range(-1, 9)], labelExpr=UNITS
            ),
        ),
        tooltip=[
            alt.Tooltip("pieces:Q", title="Pieces", format=",d"),
            alt.Tooltip("time:N", title="Median"),
            alt.Tooltip("low:Q", title="Middle half from, µs", format=".4g"),
            alt.Tooltip("high:Q", title="to, µs", format=".4g"),
        ],
    )
    band = base.mark_area(opacity=0.18, color=hue).encode(y="low:Q", y2="high:Q")
    line = base.mark_line(color=hue, strokeWidth=2.2)
    points = base.mark_point(color=hue, filled=True, size=50, opacity=1)
    times = base.mark_text(dy=-14, color=colors.text).encode(text="time:N")
    return alt.layer(band, line, points, times).properties(height=260)


def fetches(frame: pd.DataFrame, backend: str) -> Chart:
    """A bar a way to fetch numbers from the device.

    `frame` has the columns way, milliseconds, low, high, time.
    """
    colors = palette()
    most = frame["high"].max()
    base = alt.Chart(frame).encode(
        y=alt.Y(
            "way:N",
            sort=[ITEM, CPU, ONCE],
            title=None,
            axis=alt.Axis(labelLimit=190),
        ),
        tooltip=[
            alt.Tooltip("way:N", title="Way"),
            alt.Tooltip("time:N", title="Median"),
            alt.Tooltip("low:Q", title="Middle half from, ms", format=".4g"),
            alt.Tooltip("high:Q", title="to, ms", format=".4g"),
        ],
    )
    bars = base.mark_bar(color=colors.of(backend), height=16).encode(
        x=alt.X(
            "milliseconds:Q",
            title="Milliseconds",
            scale=alt.Scale(domain=[0, most * 1.25], nice=False),
            axis=alt.Axis(tickCount=5),
        )
    )
    spread = base.mark_rule(color=colors.text).encode(x="low:Q", x2="high:Q")
    times = base.mark_text(align="left", dx=6, color=colors.text).encode(
        x="high:Q", text="time:N"
    )
    return alt.layer(bars, spread, times).properties(height=alt.Step(34))
