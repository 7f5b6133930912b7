"""The way through the causes of core.machine.diagnosis, drawn as far as it was gone."""

from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

import streamlit as st

from core.machine.diagnosis import CAUSES
from core.machine.results import Diagnosis
from core.ui.charts.base import Palette, palette

# What the causes of each module ask, in their order in CAUSES, and what a yes leads
# to. What is left when all say no stands alone.
BRANCHES = (
    ("Does torch see a GPU?", "Check that it computes"),
    ("Is this a Mac?", "Check Python and macOS"),
    ("Wrong build of torch?", "Get the right build"),
    ("Is a GPU out of reach?", "Check driver and access"),
)
LEFT, RIGHT, STEP, HIGH = 190, 184, 62, 34  # pixels of the picture
BETWEEN = 48  # for the arrow of a yes
WIDE = LEFT + BETWEEN + RIGHT


class Branch(NamedTuple):
    """A question, and how it was answered here."""

    question: str  # "" for what is left
    leads_to: str  # after a yes
    asked: bool  # else the way had ended before
    yes: bool


def draw(found: Diagnosis) -> None:
    """The way, with the branches that were taken in bold."""
    answers = [
        f"{each.question} {'yes' if each.yes else 'no'}"
        for each in branches(found)
        if each.asked and each.question
    ]
    alt = f"{', '.join(answers)}: {_in_words(found.cause)}"
    st.image(picture(found, palette()), alt=alt, width="stretch")


def branches(found: Diagnosis) -> list[Branch]:
    """The modules of the causes in turn, until one of them applies."""
    ways, asked = [], True
    for at, (_, causes) in enumerate(groupby(CAUSES, lambda each: each.__module__)):
        question, leads_to = BRANCHES[at] if at < len(BRANCHES) else ("", "No GPU")
        yes = found.cause in [each.__name__ for each in causes]
        told = _in_words(found.cause) if yes else leads_to
        ways.append(Branch(question, told, asked, yes))
        asked = asked and not yes
    return ways


def _in_words(cause: str) -> str:
    """A cause by the name of its function: "no GPU"."""
    return cause.replace("_", " ").replace("gpu", "GPU")


def picture(found: Diagnosis, colors: Palette) -> str:
    """An SVG: questions from top to bottom, what they lead to on their right."""
    ink = {"cpu": colors.cpu, "broken": colors.wrong}
    strong = ink.get(found.state, colors.accelerator)
    ways = branches(found)
    high = STEP * (len(ways) - 1) + HIGH + 4
    parts = [part for at, way in enumerate(ways) for part in _row(at, way, strong)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-2 -2 {WIDE + 4} {high}" '
        f'width="{WIDE + 4}" height="{high}" font-family="sans-serif" font-size="13" '
        f'fill="{colors.text}" stroke="{colors.quiet}">{"".join(parts)}</svg>'
    )


def _row(at: int, way: Branch, strong: str) -> Iterator[str]:
    """A question and its two arrows, at a height of its own."""
    top, middle = at * STEP, at * STEP + HIGH / 2
    if not way.question:
        yield _box(0, top, LEFT, way.leads_to, strong if way.yes else "", HIGH / 2)
        return
    yield _box(0, top, LEFT, way.question, strong if way.asked else "", 4)
    leads = strong if way.yes else ""
    yield _box(LEFT + BETWEEN, top, RIGHT, way.leads_to, leads, HIGH / 2)
    yield _arrow(LEFT, middle, BETWEEN, 0, "yes", leads)
    no = strong if way.asked and not way.yes else ""
    yield _arrow(LEFT / 2, top + HIGH, 0, STEP - HIGH, "no", no)


def _box(x: float, y: float, wide: float, text: str, strong: str, round_: float) -> str:
    frame = f'stroke="{strong}" stroke-width="3"' if strong else 'stroke-width="1"'
    weight = "bold" if strong else "normal"
    return (
        f'<rect x="{x}" y="{y}" width="{wide}" height="{HIGH}" rx="{round_}" '
        f'fill="none" {frame}/><text x="{x + wide / 2}" y="{y + HIGH / 2 + 5}" '
        f'text-anchor="middle" font-weight="{weight}" stroke="none">{text}</text>'
    )


def _arrow(x: float, y: float, dx: float, dy: float, text: str, strong: str) -> str:
    """To the right or down, with a head at its end and its answer beside it."""
    line = f'stroke="{strong}" stroke-width="3"' if strong else "stroke-width='1'"
    end = f"M{x} {y}l{dx} {dy}"
    head = "m-6 -5l6 5l-6 5" if dx else "m-5 -6l5 6l5 -6"
    at = (x + dx / 2 - 11, y - 6) if dx else (x + 9, y + dy / 2 + 5)
    weight = "bold" if strong else "normal"
    return (
        f'<path d="{end}{head}" fill="none" {line}/><text x="{at[0]}" y="{at[1]}" '
        f'font-weight="{weight}" stroke="none">{text}</text>'
    )
