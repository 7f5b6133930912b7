"""The colors and shapes of all charts: functions that make an alt.Chart of a DataFrame.

If a chart's data changes while a job runs, the chart is a Vega-Lite specification, made
by a function with the decorator `live`.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, wraps
from math import floor, log10
from statistics import fmean
from typing import Any, Concatenate, ParamSpec

import altair as alt
import pandas as pd
import streamlit as st
from PIL import ImageColor

Arguments = ParamSpec("Arguments")


@dataclass(frozen=True)
class Palette:
    """One theme's colors; charts have no other colors."""

    accelerator: str
    cpu: str
    further: tuple[str, ...]  # earlier runs, and series that aren't devices
    pale: str  # a paler version of the first of `further`
    text: str
    inverse: str  # text on a heat map's cells with the strongest color
    quiet: str
    page: str
    ground: str  # a heat map's neutral cells, and the background of images
    low: str  # a heat map's lowest value, which must not look like an empty cell
    right: str  # only for right answers
    wrong: str  # only for wrong answers
    # For runs side by side; no device has one of these colors. People who lack one kind
    # of cones tell them apart, too, above all neighbors (tests/app/ui/test_charts.py).
    runs: tuple[str, ...]

    def of(self, backend: str) -> str:
        return self.cpu if backend == "CPU" else self.accelerator


LIGHT = Palette(
    accelerator="#c2410c",
    cpu="#2563a8",
    further=("#3f7d4e", "#8a5aa8", "#b58900", "#5f6b7a"),
    pale="#9cc4a6",
    text="#131722",
    inverse="#ffffff",
    quiet="#5f6b7a",
    page="#fdfcfa",
    ground="#f4f1ec",
    low="#e9e4da",
    right="#2f7d46",
    wrong="#c4183c",
    runs=(
        *("#2a4f6a", "#077e8a", "#906f00", "#8b1c56"),
        *("#6f62c9", "#73540b", "#7d3e9a", "#79321b"),
    ),
)
DARK = Palette(
    accelerator="#f0834a",
    cpu="#6aa9e9",
    further=("#7fbf8c", "#c39bd8", "#e0b94a", "#9aa5b4"),
    pale="#4c7a57",
    text="#e7e9ec",
    inverse="#14171c",
    quiet="#9aa5b4",
    page="#14171c",
    ground="#1d2229",
    low="#232a33",
    right="#7fbf8c",
    wrong="#ff5f78",
    runs=(
        *("#a99a84", "#4edaf8", "#debf57", "#e695ab"),
        *("#9483dc", "#aea22d", "#cc93e9", "#ffb9d1"),
    ),
)

Chart = alt.LayerChart | alt.FacetChart
Specification = dict[str, Any]
LATER = alt.UrlData("later")  # stands for data that comes when the chart is drawn
# Options of a legend: thin or faint lines are thick and fully colored in the legend.
LINES = {"symbolOpacity": 1, "symbolStrokeWidth": 3}
AXES = {"step": "Step", "epoch": "Epoch", "seconds": "Seconds of training"}
TALL, MIDDLE, LOW = 340, 240, 80  # heights of charts, in pixels
MOST_TICKS = 7
FONT_PIXELS = 12
CHARACTER_PIXELS = 6.6  # the mean width of a character of FONT_PIXELS
# The ticks' format: 98%, 98.5%, 99%. With a fixed precision, two ticks could have
# the same label.
PERCENT = "~%"


def palette() -> Palette:
    return DARK if st.context.theme.type == "dark" else LIGHT


def mixed(color: str, other: str, share: float) -> str:
    parts = zip(*map(ImageColor.getrgb, (color, other)), strict=True)
    return "#" + "".join(f"{round(a * share + b * (1 - share)):02x}" for a, b in parts)


@alt.theme.register("to(device)", enable=True)
def _theme() -> alt.theme.ThemeConfig:
    colors = palette()
    fonts: Any = {
        f"{part}{option}": value
        for part in ("label", "title")
        for option, value in (("Color", colors.quiet), ("FontSize", FONT_PIXELS))
    }
    return {
        # A browser may draw the last label wider than Vega measured it.
        "padding": {"right": 4},
        "config": {
            # Vega draws three to seven ticks if it is asked for four.
            "axis": {**fonts, "tickCount": 4, "titlePadding": 8, "labelPadding": 6},
            "axisX": {"grid": False},
            "axisBand": {"labelFlush": False},  # so that names are beside their rows
            "header": fonts,
            "legend": {**fonts, "labelColor": colors.text, "labelLimit": 0},
            "rule": {"color": colors.text},
            "text": {"color": colors.text, "fontSize": FONT_PIXELS},
        },
    }


def live(
    draw: Callable[Concatenate[Palette, Arguments], Chart],
) -> Callable[Arguments, Specification]:
    """Decorate a function that returns a chart: a call now returns its JSON.

    `draw` gets the palette as its first argument, which callers leave out. In
    place of the chart's data, `draw` uses LATER.

    Building a chart takes far longer than sending its data. So a chart is built only
    once for each theme and each set of arguments, and st.vega_lite_chart draws this
    specification with the newest data.
    """

    @lru_cache(maxsize=256)
    def build(*arguments: Any, **named: Any) -> Specification:
        return _without_later(draw(*arguments, **named).to_dict())

    built: Callable[..., Specification] = build

    @wraps(draw)
    def themed(*arguments: Arguments.args, **named: Arguments.kwargs) -> Specification:
        return built(palette(), *arguments, **named)

    return themed


def _without_later(node: Any) -> Any:
    if isinstance(node, dict):
        later = LATER.to_dict()
        return {k: _without_later(v) for k, v in node.items() if v != later}
    return [_without_later(n) for n in node] if isinstance(node, list) else node


def hues(
    column: str, names: Iterable[str], colors: Iterable[str], **legend: Any
) -> alt.Color:
    """A color for each name in a column, with a legend above the chart."""
    color = alt.Color(f"{column}:N").scale(domain=list(names), range=list(colors))
    return color.legend(title=None, orient="top", **legend)


def shades(column: str, *colors: str, **scale: Any) -> alt.Color:
    color = alt.Color(f"{column}:Q").legend(None)
    return color.scale(range=list(colors), interpolate="rgb", **scale)


def either(test: str, then: Any, otherwise: Any) -> Any:
    return alt.condition(test, alt.value(then), alt.value(otherwise))


def ticks(values: Iterable[float], **axis: Any) -> alt.Axis:
    """An axis with a tick at each value. Without a count, Vega drops some."""
    values = list(values)
    return alt.Axis(values=values, tickCount=len(values), **axis)


def whole_numbers(last: int) -> list[int]:
    """Ticks for the whole numbers from 1 to `last`: both ends, and some between."""
    steps = (digit * 10**power for power in range(12) for digit in (1, 2, 5))
    step = next(step for step in steps if last - 1 <= step * (MOST_TICKS - 1))
    inner = [n for n in range(step, last, step) if min(n - 1, last - n) * 2 >= step]
    return sorted({1, *inner, last})


def decades(low: float, high: float) -> list[float]:
    """Ticks for a logarithmic axis from `low` to `high`: at most 7 powers of ten.

    If fewer than three powers lie on the axis, other round numbers are added.
    """
    first, last = floor(log10(low)), floor(log10(high))
    step = int(last - log10(low)) // MOST_TICKS + 1
    powers = range(last, first - 1, -step)
    for digits in ((1,), (1, 3), (1, 2, 5), range(1, 10)):
        values = [digit * 10.0**power for power in powers for digit in digits]
        values = [value for value in values if low <= value <= high]
        if len(values) > 2:
            break
    return values


def before(texts: Iterable[str], dx: int = 8) -> list[Any]:
    """An x axis's range, in pixels, that leaves room for texts right of the marks."""
    longest = max(map(len, texts), default=0)
    room = dx + CHARACTER_PIXELS * longest
    return [0, {"expr": f"max(width - {room:.0f}, width / 3)"}]


def spread_labels(heights: Sequence[float], gap: float, top: float) -> list[float]:
    """The heights, moved so that texts there don't cover each other.

    They stay in order, from 0 to `top` and `gap` apart, each group of neighbors near
    the mean of its own heights. If they are too many, they are closer together.
    """
    order = sorted(range(len(heights)), key=heights.__getitem__)
    gap = min(gap, top / max(1, len(heights) - 1))
    groups: list[list[float]] = []  # what the lowest of each group would prefer
    for place, number in enumerate(order):
        groups.append([heights[number] - place * gap])
        while len(groups) > 1 and fmean(groups[-2]) > fmean(groups[-1]):
            groups[-2:] = [groups[-2] + groups[-1]]
    lowest = [fmean(group) for group in groups for _ in group]
    most = top - (len(order) - 1) * gap
    moved = [min(max(0.0, low), most) + n * gap for n, low in enumerate(lowest)]
    return [height for _, height in sorted(zip(order, moved, strict=True))]


def tips(format: str = "", **titles: str) -> list[alt.Tooltip]:
    """Tooltips for columns, as in `loss="Loss"`. With `format`, columns are numbers."""
    kind, number = ("Q", format) if format else ("N", alt.Undefined)
    return [
        alt.Tooltip(f"{column}:{kind}", title=title, format=number)
        for column, title in titles.items()
    ]


def middle_half(unit: str) -> list[alt.Tooltip]:
    """Tooltips for columns time (the median in words), low and high (the quartiles)."""
    ends = {"low": f"Lower quartile, {unit}", "high": f"Upper quartile, {unit}"}
    return tips(time="Median") + tips(".4g", **ends)


def microseconds() -> alt.Axis:
    """An axis with powers of ten, for a column in µs. Labels are in µs, ms, or s."""
    labels = (
        "datum.value < 1000 ? format(datum.value, '~r') + ' µs' : "
        "datum.value < 1000000 ? format(datum.value / 1000, '~r') + ' ms' : "
        "format(datum.value / 1000000, '~r') + ' s'"
    )
    return ticks((10.0**power for power in range(-1, 9)), labelExpr=labels)


# Functions that make each kind of chart; lengths in their arguments are in pixels


def rows(frame: pd.DataFrame, y: str, limit: int = 200, **channels: Any) -> alt.Chart:
    """A row for each name in column `y`, the first on top; names are cut at `limit`."""
    names = alt.Y(f"{y}:N").title(None).sort(list(dict.fromkeys(frame[y])))
    axis = alt.Axis(labelLimit=limit, labelColor=palette().text)
    return alt.Chart(frame).encode(y=names.axis(axis), **channels)


def above(offset: int) -> alt.Axis:
    """A y axis with names above their rows: a GPU's name can be as wide as a phone.

    `offset` is the distance from a name to its row's middle.
    """
    place: Any = {"labelAlign": "left", "labelPadding": 0, "labelOffset": -offset}
    return alt.Axis(labelLimit=0, labelColor=palette().text, **place)


def bars(
    rows: alt.Chart,
    x: alt.X,
    text: str | alt.Text,
    step: int = 34,
    *,
    mark: alt.Chart | None = None,
    height: Any = 16,
    dx: int = 6,
    **channels: Any,
) -> Chart:
    """A bar per row, with a text after it.

    If the data has columns low and high, a line over the bar goes from low to high. The
    text begins at the value in a column named end, or else after the line or the bar.
    `step` is the distance between rows, and `channels` are encodings of the bars. If
    `x` has no domain, the axis ends at the highest value.
    """
    frame = rows.data
    end = next((column for column in ("end", "high") if column in frame), None)
    last = alt.X(f"{end}:Q") if end else x
    column = str(text).partition(":")[0]
    texts = frame[column].map(str) if isinstance(text, str) else ["0,000.0%"]
    most = frame[last["shorthand"].partition(":")[0]].max()
    own = {} if x["scale"] is alt.Undefined else x["scale"]
    scale = {"domain": [0, most or 1], "nice": False, "range": before(texts, dx)} | own
    marks = mark or rows.mark_bar(height=height)
    layers = [marks.encode(x=x.scale(**scale), **channels)]
    if "high" in frame:
        layers.append(rows.mark_rule().encode(x="low:Q", x2="high:Q"))
    label = rows.mark_text(align="left", dx=dx)
    layers.append(label.encode(x=last, text=text))
    return alt.layer(*layers).properties(height=alt.Step(step))


def dots(
    rows: alt.Chart, x: alt.X, text: str | alt.Text, step: int = 34, **channels: Any
) -> Chart:
    """Like `bars`, with dots: a logarithmic axis has no 0 where a bar could begin."""
    mark = rows.mark_circle(size=90, opacity=1)
    return bars(rows, x, text, step, mark=mark, dx=9, **channels)


def lines(
    chart: alt.Chart,
    width: float = 2.2,
    points: int = 0,
    band: bool = False,
    **mark: Any,
) -> Chart:
    """A line. `points` is its points' size; `band` shades from column low to high."""
    if points:
        mark["point"] = alt.OverlayMarkDef(size=points)
    line = chart.mark_line(strokeWidth=width, **mark)
    # The area gets no tooltip: it would always show the first point's values.
    shade = chart.mark_area(opacity=0.18).encode(
        y="low:Q", y2="high:Q", tooltip=alt.value(None)
    )
    return alt.layer(shade, line) if band else alt.layer(line)


def heat_map(
    chart: alt.Chart,
    shade: alt.Color,
    text: Any,
    colors: Palette,
    dark: str = "false",
    *,
    select: alt.Parameter | None = None,
    size: int = 11,
    dy: int = 0,
    aria: bool = True,
    **cell: Any,
) -> Chart:
    """Cells with texts, in the color `inverse` if Vega's test `dark` is true.

    A click on a cell sets `select`. `size` is the texts' size, `dy` is how far they are
    below the middle, and `cell` has encodings of the cells. If `aria` is false, screen
    readers skip the cells and read only the texts. Set it to false if the chart may be
    empty: without cells, screen readers would announce an image that has no name.
    """
    cells = chart.mark_rect(aria=aria).encode(color=shade, **cell)
    if select:
        cells = cells.mark_rect(aria=aria, cursor="pointer").add_params(select)
    ink = either(dark, colors.inverse, colors.text)
    texts = chart.mark_text(fontSize=size, dy=dy).encode(text=text, color=ink)
    return alt.layer(cells, texts)


@live
def share(colors: Palette, backend: str) -> Chart:
    """A thin bar in the device's color. The data has a column share, from 0 to 1."""
    x = alt.X("share:Q").scale(domain=[0, 1], clamp=True).axis(None)
    thin: Any = {"height": 8, "aria": False}  # screen readers read the chart's `alt`
    bar = alt.Chart(LATER).mark_bar(color=colors.of(backend), **thin).encode(x=x)
    ground = alt.Chart(LATER).mark_bar(color=colors.quiet, opacity=0.25, **thin)
    whole = ground.encode(x=alt.value(0), x2=alt.value("width"))
    return alt.layer(whole, bar).properties(height=12)
