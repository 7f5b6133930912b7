"""The diagnosis as the Device page shows it: verdict, causes, and code."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import streamlit as st

from core.serving.request_source import is_direct
from core.ui import figures, frame
from core.ui.charts import Palette, palette
from core.ui.server import explained
from core.ui.source import code_tabs
from to_device.diagnose.collect_env import LINES, MOST_CHARACTERS, diagnose_report
from to_device.diagnose.diagnosis import BRANCHES, CAUSES
from to_device.diagnose.machine import Diagnosis, Facts
from to_device.words import Words, capitalized

words = Words(__file__)

# Measures of the diagram, in pixels: the widths of the boxes on the left, of the arrows
# to the right, and of the boxes there; then the heights of a row and of a box.
LEFT, ARROW, RIGHT = 190, 48, 184
WIDTH = LEFT + ARROW + RIGHT
ROW, BOX = 62, 34


def verdict(diagnosis: Diagnosis) -> None:
    if diagnosis.state == "broken":
        st.error(f"**{diagnosis.verdict}**", icon=":material/error:")
    with st.container(border=True):
        if diagnosis.state != "broken":
            on = "CPU" if diagnosis.state == "cpu" else "accelerator"
            st.badge(on, icon=":material/memory:", color=frame.device_color(on))
            st.markdown(f"**{diagnosis.verdict}**")
        st.markdown(diagnosis.why)
        st.markdown(f"**What to do:** {diagnosis.way_out}")
        if diagnosis.command:
            st.code(diagnosis.command, language="bash", wrap_lines=True)


def for_visitor(diagnosis: Diagnosis) -> Diagnosis:
    """The diagnosis, in words that name the server if the visitor is remote."""
    if is_direct(st.context.headers):
        return diagnosis
    st.info(words("pasted.server"), icon=":material/dns:")
    verdict, why = (
        text.replace("This machine", "The server")
        for text in (diagnosis.verdict, diagnosis.why)
    )
    return replace(diagnosis, verdict=verdict, why=why)


def another(facts: Facts) -> None:
    """Draw a form that diagnoses another machine from its pasted report."""
    st.markdown(words("pasted.ask"), width=frame.PROSE)
    st.code(LINES, language="bash", wrap_lines=True)
    with st.form("another_machine", border=False):
        label, most = "What these lines print", MOST_CHARACTERS
        text = st.text_area(label, key="pasted_report", height=120, max_chars=most)
        if st.form_submit_button("Diagnose"):
            with explained("This report can't be read"):
                verdict(diagnose_report(text, facts.releases))
    st.markdown(words("pasted.terminal"), width=frame.PROSE)


def code(diagnosis: Diagnosis) -> None:
    causes = "\n".join(
        f"{number}. `{cause.__name__}`: {(cause.__doc__ or '').partition('.')[0]}"
        + (" **← this machine**" if cause.__name__ == diagnosis.cause else "")
        for number, cause in enumerate(CAUSES, 1)
    )
    code_tabs(
        ("The check", words("code.check"), "to_device.diagnose.facts:try_to_compute"),
        (
            "The diagnosis",
            words("code.diagnosis", count=len(CAUSES)),
            "to_device.diagnose.diagnosis:diagnose",
            causes,
        ),
    )


class Branch(NamedTuple):
    question: str  # "" for the last branch, which is taken if all answers are no
    leads_to: str  # the outcome after a yes
    asked: bool  # False if an earlier question was answered with yes
    yes: bool  # whether the answer is yes


def draw(diagnosis: Diagnosis) -> None:
    """Draw the questions, with the branches that were taken in bold."""
    answers = [
        f"{branch.question} {'yes' if branch.yes else 'no'}"
        for branch in branches(diagnosis)
        if branch.asked and branch.question
    ]
    alt = f"{', '.join(answers)}: {_in_words(diagnosis.cause)}"
    figures.drawing(picture(diagnosis, palette()), alt, "causes")


def branches(diagnosis: Diagnosis) -> list[Branch]:
    """A branch for each group of causes.

    After the question of the diagnosed cause, no question is asked.
    """
    way, asked = [], True
    for name, group in BRANCHES.items():
        texts = words.table("branches")[name]
        yes = diagnosis.cause in [cause.__name__ for cause in group]
        end = _in_words(diagnosis.cause) if yes else texts["leads_to"]
        way.append(Branch(texts.get("question", ""), end, asked, yes))
        asked = asked and not yes
    return way


def _in_words(cause: str) -> str:
    """A cause's name as words, such as "No GPU" for "no_gpu"."""
    return capitalized(cause.replace("_", " ").replace("gpu", "GPU"))


# Not drawn with Mermaid, which breaks these labels into lines and halves their size.
def picture(diagnosis: Diagnosis, colors: Palette) -> str:
    """An SVG: questions from top to bottom, with their outcomes on the right."""
    ink = {"cpu": colors.cpu, "broken": colors.wrong}
    strong = ink.get(diagnosis.state, colors.accelerator)
    way = branches(diagnosis)
    height = ROW * (len(way) - 1) + BOX + 4
    parts = [part for row in enumerate(way) for part in _row(*row, strong)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-2 -2 {WIDTH + 4} {height}" '
        f'width="{WIDTH + 4}" height="{height}" font-size="13" '
        f'fill="{colors.text}" stroke="{colors.quiet}">{"".join(parts)}</svg>'
    )


def _row(number: int, branch: Branch, strong: str) -> Iterator[str]:
    top = number * ROW
    middle = top + BOX / 2
    yes = strong if branch.yes else ""
    no = strong if branch.asked and not branch.yes else ""

    def box(x: float, width: float, text: str, color: str, radius: float) -> str:
        place = f'x="{x}" y="{top}" width="{width}" height="{BOX}" rx="{radius}"'
        return _part(f"rect {place}", text, x + width / 2, middle + 5, color, "middle")

    if not branch.question:
        yield box(0, LEFT, branch.leads_to, yes, BOX / 2)
        return
    yield box(0, LEFT, branch.question, strong if branch.asked else "", 4)
    yield box(LEFT + ARROW, RIGHT, branch.leads_to, yes, BOX / 2)
    right = f'path d="M{LEFT} {middle}h{ARROW}m-6 -5l6 5l-6 5"'
    yield _part(right, "yes", LEFT + ARROW / 2 - 11, middle - 6, yes)
    down = f'path d="M{LEFT / 2} {top + BOX}v{ROW - BOX}m-5 -6l5 6l5 -6"'
    yield _part(down, "no", LEFT / 2 + 9, top + (ROW + BOX) / 2 + 5, no)


def _part(
    shape: str, text: str, x: float, y: float, color: str, anchor: str = "start"
) -> str:
    """The SVG of a shape and its text, in bold and in `color` if that is not ""."""
    line = f'stroke="{color}" stroke-width="3"' if color else 'stroke-width="1"'
    weight = "bold" if color else "normal"
    return (
        f'<{shape} fill="none" {line}/><text x="{x}" y="{y}" text-anchor="{anchor}" '
        f'font-weight="{weight}" stroke="none">{text}</text>'
    )
