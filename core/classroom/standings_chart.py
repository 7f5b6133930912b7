"""The class's best runs as points: what they cost, and how good they are."""

from collections.abc import Iterable, Sequence
from math import ceil, floor, log, log10
from typing import Any

import altair as alt
import numpy as np

from core.ui import charts
from core.ui.charts import LATER, MOST_TICKS, Chart, Palette

ROUND = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8)
SHAPES = ("circle", "square", "triangle-up")
Ticks = tuple[float, ...]


def costs(values: Iterable[float]) -> Ticks:
    """Three to MOST_TICKS round numbers around positive values, for a log axis."""
    values = [max(value, 1e-3) for value in values]
    if not values:
        return 1, 10, 100
    low, high = min(values) / 1.2, max(values) * 1.2
    powers = [10.0**n for n in range(floor(log10(low)), ceil(log10(high)) + 1)]
    rounds = [digit * power for power in powers for digit in ROUND]
    low, high = max(v for v in rounds if v <= low), min(v for v in rounds if v >= high)
    for digits in (ROUND, (1, 2, 5), (1, 3), (1,)):
        inner = [v for p in powers for d in digits if low < (v := d * p) < high]
        if len(inner) <= MOST_TICKS - 2:
            break
    return low, *inner, high


def shares(values: Sequence[float]) -> Ticks:
    """The ticks of an axis: round accuracies around `values`, at most MOST_TICKS."""
    for step in (0.005, 0.01, 0.02, 0.05, 0.1, 0.2):
        first, last = floor(min(values) / step), ceil(max(values) / step)
        if last - first < MOST_TICKS:
            break
    first = min(first, round(1 / step) - 1)  # nothing is above 100%
    return tuple(round(n * step, 3) for n in range(first, max(last, first + 1) + 1))


def along(value: float, ticks: Ticks, begin: float, end: float) -> float:
    """The place of a value on an axis with these ticks, drawn from begin to end."""
    return float(np.interp(value, (ticks[0], ticks[-1]), (begin, end)))


def sides(
    points: Iterable[tuple[str, float, float]], ticks: tuple[Ticks, Ticks], pixels: int
) -> list[str]:
    """Where each name has room beside its point: "right", "left", or "" for nowhere.

    `points` are name, cost, and accuracy, the most important first.
    """
    logs = tuple(map(log, ticks[0]))
    width, height, half = 42 * pixels, 18 * pixels, 0.6 * pixels
    places = [
        (name, along(log(cost), logs, 0, width), along(accuracy, ticks[1], 0, height))
        for name, cost, accuracy in points
    ]
    taken = [(x - half, y, 2 * half) for _, x, y in places]
    found = []
    for name, x, y in places:
        room, chosen = pixels * 0.62 * len(name), ""
        for side, left in (("left", x - half - room), ("right", x + half)):
            if 0 <= left <= width - room and all(
                abs(y - other) >= pixels or left >= begin + wide or begin >= left + room
                for begin, other, wide in taken
            ):
                chosen, box = side, (left, y, room)
        taken += [box] if chosen else []
        found.append(chosen)
    return found


@charts.live
def scatter(
    colors: Palette,
    backends: tuple[str, ...],
    tasks: tuple[str, ...],
    lines: tuple[float | None, float | None],
    ticks: tuple[Ticks, Ticks],
    title: str,
    height: int,
    pixels: int,
) -> Chart:
    """Accuracy over cost; letters are `pixels` high.

    Columns: who, cost, accuracy, backend, task, costs (in words), side (of the name),
    and mine: "You" for the visitor. `lines` are the quest's limits.
    """
    fonts: Any = {"labelFontSize": pixels, "titleFontSize": pixels}
    across, up = ticks
    axes = alt.Chart(LATER).encode(
        x=alt.X("cost:Q")
        .title(title)
        .scale(type="log", nice=False, domain=[across[0], across[-1]])
        .axis(charts.ticks(across, format=",~r", **fonts)),
        y=alt.Y("accuracy:Q")
        .title("Test accuracy")
        .scale(zero=False, domain=[up[0], up[-1]])
        .axis(charts.ticks(up, format=charts.PERCENT, **fonts)),
    )
    legend: Any = {"labelFontSize": pixels}
    ink: Any = {"symbolFillColor": colors.text, "symbolStrokeColor": colors.text}
    hues = [colors.of(backend) for backend in backends]
    color = charts.hues("backend", backends, hues, symbolOpacity=1, **legend)
    shape = alt.Shape("task:N").scale(domain=tasks, range=SHAPES[: len(tasks)])
    several = alt.Legend(title=None, orient="top", **ink, **legend)
    points = axes.mark_point(filled=True, size=pixels * 7, opacity=0.85).encode(
        color=color if len(backends) > 1 else color.legend(None),
        shape=shape.legend(several if len(tasks) > 1 else None),
        tooltip=charts.tips(who="Who", task="Task", backend="Device", costs="Cost")
        + charts.tips(".2%", accuracy="Test accuracy"),
    )
    mine = axes.transform_filter("datum.mine")
    ring = mine.mark_point(size=pixels * 20, strokeWidth=2.5, color=colors.text)
    you = mine.mark_text(dy=-1.5 * pixels, fontSize=pixels, fontWeight="bold")
    sides: Any = (("right", "left", 0.8), ("left", "right", -0.8))
    names = [
        axes.transform_filter(f"datum.side == '{side}'")
        .mark_text(align=align, dx=dx * pixels, fontSize=pixels, fontWeight="bold")
        .encode(text="who:N")
        for side, align, dx in sides
    ]
    limits = [
        alt.Chart(alt.Data(values=[{"limit": value}]))
        .encode(**{axis: "limit:Q"})
        .mark_rule(color=colors.quiet, strokeDash=[5, 4], aria=False)
        for axis, value in zip("xy", lines, strict=True)
        if value
    ]
    layers = (*limits, points, ring, you.encode(text="mine:N"), *names)
    return alt.layer(*layers).properties(height=height)
