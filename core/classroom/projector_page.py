"""The board on the room's wall: large, live, and without a sidebar."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import segno
import streamlit as st

from core.classroom import board_page as board
from core.classroom import guesses_page as guesses
from core.classroom import joining_page as joining
from core.classroom.rules import Rules
from core.classroom.standings_page import Standings
from core.errors import ExplainedError
from core.ui import charts, paper, runs, wall
from core.ui.course import CLASS, TEACHER, link
from core.ui.frame import LOGO
from core.ui.runs import Run
from core.ui.server import engine, room, visitor
from core.words import Words

words = Words(__file__)

MOST_PLACES = 5
MOST_MISTAKES, MISTAKE_PIXELS = 16, 100  # in a row; width of one


def draw() -> None:
    """Only for members and teachers, since the page shows the code to join."""
    st.set_page_config(
        page_title="Class · to(device)",
        page_icon=LOGO,
        layout="wide",
        initial_sidebar_state="collapsed",
    )
    if room().board_for(visitor()) is None:
        st.title("Class")
        st.markdown(words("projector.not_in"))
        link(CLASS, "Class")
        link(TEACHER)
        return
    board.live(_wall)


def _part(part: str, **fields: Any) -> None:
    template = paper.template(Path(__file__).with_name("wall.html"))
    st.html(str(getattr(template.module, part)(**fields)))


def _wall(standings: Standings) -> None:
    shown = standings.opened
    rules: Rules = shown.rules
    leader = board.leader(standings, named=not rules.anonymous)
    door = joining.link_to(shown)
    code = segno.make(door, error="m")
    _part(
        "head",
        shown=shown,
        lines=[*filter(None, (leader, board.headline(standings), standings.luck))],
        qr=code.svg_data_uri(scale=4, border=2, dark=charts.LIGHT.text, light="white"),
        door=door,
        address=joining.address("Class").partition("://")[2],
        joined=len(standings.names),
    )
    left, right = st.columns([12, 8], gap="large")
    with left:
        board.chart(standings, on_wall=True)
    with right:
        places = [
            (
                "Somebody" if rules.anonymous else run.name,
                run.score(rules),
                run.reached(rules),
            )
            for run in standings.best
            if run.task == standings.task
        ]
        now = board.queue_lines(standings, on_wall=True) if shown.is_open else []
        _part("side", places=places[:MOST_PLACES], now=now)
    if revealed := room().revealed:
        _tally(standings, revealed)
    elif engine().machine() and (newest := runs.run(standings.newest)):
        with suppress(ExplainedError):
            _mistakes(newest)


def _tally(standings: Standings, key: str) -> None:
    asked = next(each for each in guesses.GUESSES if each.key == key)
    answers = guesses.counts(standings.guesses.get(asked.key, {}).values())
    _part(
        "tally",
        title=asked.title,
        answers=[(str(answer), people) for answer, people in answers.most_common()],
        right=(room().with_result and asked.measured()) or ((), ""),
        color=charts.palette().right,
    )


def _mistakes(newest: Run) -> None:
    """Images that the class's newest model gets wrong. Raises ExplainedError."""
    pixels, labels = wall.images(newest.config.task)
    if wrong := sorted(wall.wrong(newest, labels) or ()):
        _part("line", text=f"The newest model gets {len(wrong)} of {len(labels)} wrong")
        shown = wrong[:MOST_MISTAKES]
        what, width = f"{len(shown)} of them", len(shown) * MISTAKE_PIXELS
        wall.show(pixels[shown], what, width, columns=MOST_MISTAKES)
