"""The charts of a class: everybody's best run, and what they guessed."""

from typing import Any

import altair as alt

from core.ui.charts import base
from core.ui.charts.base import LATER, Chart, Palette

SECONDS = [  # ticks; of those that would touch, some are left out
    float(f"{digit}e{power}")
    for power in range(-1, 4)
    for digit in (1, 1.5, 2, 3, 4, 5, 7)
]
SHAPES = ("circle", "square", "triangle-up")


@base.live
def scatter(
    colors: Palette,
    backends: tuple[str, ...],
    tasks: tuple[str, ...],
    target: float,
    height: int,
    pixels: int = base.FONT_PIXELS,
) -> Chart:
    """A point a person's best on a task; `pixels` is how high letters are.

    For data with the columns who, seconds, accuracy, backend, task, and mine: "You" at
    the visitor's own, else empty.
    """
    fonts: Any = {"labelFontSize": pixels, "titleFontSize": pixels}
    chart = alt.Chart(LATER).encode(
        x=alt.X("seconds:Q")
        .title("Total seconds")
        .scale(type="log", nice=False, padding=24)
        .axis(values=SECONDS, format="~r", labelOverlap="greedy", **fonts),
        y=alt.Y("accuracy:Q")
        .title("Test accuracy")
        .scale(zero=False, padding=16)
        .axis(format=base.PERCENT, **fonts),
    )
    several: Any = {"labelFontSize": pixels}
    hues = [colors.of(each) for each in backends]
    color = base.hues("backend", backends, hues, symbolOpacity=1, **several)
    shape = alt.Shape("task:N").scale(domain=tasks, range=SHAPES[: len(tasks)])
    points = chart.mark_point(filled=True, size=pixels * 7, opacity=0.85).encode(
        color=color if len(backends) > 1 else color.legend(None),
        shape=shape.legend(
            alt.Legend(
                title=None,
                orient="top",
                symbolFillColor=colors.text,
                symbolStrokeColor=colors.text,
                **several,
            )
            if len(tasks) > 1
            else None
        ),
        tooltip=base.tips(who="Who", task="Task", backend="Device")
        + base.tips(".2%", accuracy="Test accuracy")
        + base.tips(".1f", seconds="Seconds"),
    )
    mine = chart.transform_filter("datum.mine")
    ring = mine.mark_point(size=pixels * 20, strokeWidth=2.5, color=colors.text)
    you = mine.mark_text(dy=-1.5 * pixels, fontSize=pixels, fontWeight="bold")
    line = alt.Chart(alt.Data(values=[{"target": target}])).encode(y="target:Q")
    quest = line.mark_rule(color=colors.quiet, strokeDash=[5, 4], aria=False)
    layers = (quest, points, ring, you.encode(text="mine:N"))
    return alt.layer(*layers).properties(height=height)


@base.live
def guesses(colors: Palette, answers: tuple[str, ...], right: str) -> Chart:
    """How many gave each of these answers; what the machine said is green.

    For data with the columns answer and people.
    """
    chart = alt.Chart(LATER).encode(
        x=alt.X("people:Q").axis(None).scale(domainMin=0, padding=28),
        y=alt.Y("answer:N")
        .title(None)
        .sort(list(answers))
        .axis(labelLimit=220, labelColor=colors.text),
    )
    hue = alt.Color("answer:N").legend(None)
    order = [*dict.fromkeys((*answers, right))]
    bars = chart.mark_bar(height=16).encode(
        color=hue.scale(
            domain=order,
            range=[colors.right if each == right else colors.quiet for each in order],
        )
    )
    texts = chart.mark_text(align="left", dx=6).encode(text="people:Q")
    return alt.layer(bars, texts).properties(height=alt.Step(30))
