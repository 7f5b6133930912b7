"""The chart of the class's best runs: test accuracy over cost, in seconds or steps."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from math import ceil, floor, log, log10
from typing import Any

import altair as alt

from core.ui import charts
from core.ui.charts import LATER, MOST_TICKS, TALL, Chart, Palette

ROUND_DIGITS = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8)
APART = 1.25  # the factor between an end of the axis and the next tick, or more
SIZE = 84  # square pixels of a point
WIDTH, HEIGHT = 36, 18  # the projector's chart, in heights of a letter
# Left end, y, and width of the axis's labels, which names must not cover
AXIS_LABELS = (0, -1.5, WIDTH)
OFFSETS = (0, -0.5, 0.5, -1, 1, -1.5, 1.5, -2, 2)  # of a name from its point, in lines
Ticks = tuple[float, ...]
Point = tuple[str, float, float, str]  # who, cost, accuracy, backend
Limits = tuple[float | None, float | None]  # the quest's highest cost, lowest accuracy


def costs(values: Iterable[float]) -> Ticks:
    """Ticks of a logarithmic axis: 3 to MOST_TICKS round numbers around all values."""
    values = [max(value, 1e-3) for value in values]
    if not values:
        return 1, 10, 100
    low, high = min(values) / 1.2, max(values) * 1.2
    powers = [10.0**n for n in range(floor(log10(low)), ceil(log10(high)) + 1)]
    rounds = [digit * power for power in powers for digit in ROUND_DIGITS]
    low, high = max(v for v in rounds if v <= low), min(v for v in rounds if v >= high)
    for digits in (ROUND_DIGITS, (1, 2, 3, 5), (1, 2, 5), (1, 3), (1,)):
        inner = [v for p in powers for d in digits if low < (v := d * p) < high]
        # Beside an end, a label would nearly touch the end's.
        inner = [v for v in inner if low * APART <= v <= high / APART] or inner
        if len(inner) <= MOST_TICKS - 2:
            break
    return low, *inner, high


def shares(values: Sequence[float]) -> Ticks:
    """The ticks of an axis: round accuracies around `values`, at most MOST_TICKS."""
    for step in (0.005, 0.01, 0.02, 0.05, 0.1, 0.2):
        first, last = floor(min(values) / step), ceil(max(values) / step)
        if last - first < MOST_TICKS:
            break
    first = min(first, round(1 / step) - 1)  # so that no tick is above 100%
    return tuple(round(n * step, 3) for n in range(first, max(last, first + 1) + 1))


def ticks(points: Sequence[Point], limits: Limits) -> tuple[Ticks, Ticks]:
    most, least = ([limit] if limit else [] for limit in limits)
    return (
        costs([point[1] for point in points] + most),
        shares(([point[2] for point in points] or [0.8]) + least),
    )


def scaled(points: Sequence[Point], limits: Limits) -> dict[str, Any]:
    """The fields from which an HTML template draws the chart.

    x(cost) and y(accuracy) are percentages of the chart's width and height.
    """
    across, up = ticks(points, limits)
    left, right = log(across[0]), log(across[-1])
    return {
        "costs": across,
        "shares": up,
        "x": lambda cost: 100 * (log(cost) - left) / (right - left),
        "y": lambda share: 100 * (share - up[0]) / (up[-1] - up[0]),
        "points": points,
    }


def sides(chart: Mapping[str, Any]) -> list[tuple[str, float]]:
    """Where each name has room: "right" or "left" of its point, and how many lines up.

    A name without room has the side "". The `chart` comes from `scaled`. Its points
    begin with the most important one, whose name is placed first. A name above or below
    its point needs a line to it, since it may be nearer to another one.
    """
    points = [
        (name, WIDTH * chart["x"](cost) / 100, HEIGHT * chart["y"](share) / 100)
        for name, cost, share, *_ in chart["points"]
    ]
    boxes = [(x - 0.5, y, 1.0) for _, x, y in points]  # left end, y, width
    places: list[tuple[str, float]] = []
    for name, x, y in points:
        room = 0.62 * len(name)
        ways = product(OFFSETS, (("right", x + 0.6), ("left", x - 0.6 - room)))
        for lines, (side, left) in ways:
            line = y + lines
            if 0 <= left <= WIDTH - room and all(
                abs(line - other) >= 1 or left >= begin + wide or begin >= left + room
                for begin, other, wide in (*boxes, AXIS_LABELS)
            ):
                boxes.append((left, line, room))
                places.append((side, lines))
                break
        else:
            places.append(("", 0))
    return places


@charts.live
def scatter(
    colors: Palette,
    backends: tuple[str, ...],
    lines: Limits,
    ticks: tuple[Ticks, Ticks],
    title: str,
) -> Chart:
    """A point for each run: accuracy over cost.

    `lines` are the limits of the quest, the goal that the class's rules set. The
    data needs the columns who, cost, accuracy, backend, costs (the cost in words),
    and mine, which is "You" in the rows of the visitor's own runs.
    """
    across, up = ticks
    axes = alt.Chart(LATER).encode(
        x=alt.X("cost:Q")
        .title(title)
        .scale(type="log", nice=False, domain=[across[0], across[-1]])
        .axis(charts.ticks(across, format=",~r")),
        y=alt.Y("accuracy:Q")
        .title("Test accuracy")
        .scale(zero=False, domain=[up[0], up[-1]])
        .axis(charts.ticks(up, format=charts.PERCENT)),
    )
    hues = [colors.of(backend) for backend in backends]
    color = charts.hues("backend", backends, hues, symbolOpacity=1)
    points = axes.mark_point(filled=True, size=SIZE, opacity=0.85).encode(
        color=color if len(backends) > 1 else color.legend(None),
        tooltip=charts.tips(who="Who", backend="Device", costs="Cost")
        + charts.tips(".2%", accuracy="Test accuracy"),
    )
    mine = axes.transform_filter("datum.mine")
    # Without a run of one's own, it would be announced as an image without a name.
    ring = mine.mark_point(
        size=3 * SIZE, strokeWidth=2.5, color=colors.text, aria=False
    )
    you = mine.mark_text(align="right", dx=-12, fontWeight="bold")
    limits = [
        alt.Chart(alt.Data(values=[{"limit": value}]))
        .encode(**{axis: "limit:Q"})
        .mark_rule(color=colors.quiet, strokeDash=[5, 4], aria=False)
        for axis, value in zip("xy", lines, strict=True)
        if value
    ]
    layers = (*limits, points, ring, you.encode(text="mine:N"))
    return alt.layer(*layers).properties(height=TALL)
