"""The class's board for a projector: large, live, and without a sidebar."""

from base64 import b64encode
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import segno
import streamlit as st

from core.classroom import board_page as board
from core.classroom import guesses_page as guesses
from core.classroom import joining_page as joining
from core.classroom import standings_chart as axes
from core.classroom.standings_page import Standings
from core.ui import charts, image_wall, paper, runs
from core.ui.course import CLASS, TEACHER, link
from core.ui.frame import LOGO
from core.ui.polling import PATIENT_SECONDS
from core.ui.server import engine, room, visitor
from to_device.errors import ExplainedError
from to_device.words import Words

words = Words(__file__)

WALL_SECONDS = 1.0  # a class waits for what its teacher shows
MOST_PLACES = 5
MOST_MISTAKES = 10  # images that the newest model gets wrong, in one row


def draw() -> None:
    """Draw the board, for members and teachers only: it contains the code to join."""
    st.set_page_config(
        page_title="Class · to(device)",
        page_icon=LOGO,
        layout="wide",
        initial_sidebar_state="collapsed",
    )
    if room().board_for(visitor()) is None:
        st.title("Class")
        if room().is_teacher(visitor()):
            st.markdown("The class isn't open yet. This view begins once you open it.")
        else:
            st.markdown(words("projector.not_in"))
        link(CLASS, "Class")
        link(TEACHER)
        _wait_for_board()
        return
    board.live(_wall, WALL_SECONDS)


@st.fragment(run_every=PATIENT_SECONDS)
def _wait_for_board() -> None:
    """Draw the board once somebody has signed in or joined in another tab."""
    if room().board_for(visitor()) is not None:
        st.rerun()


def _wall(standings: Standings) -> None:
    classroom, rules = standings.classroom, standings.classroom.rules
    door = joining.link_to(classroom)
    code = segno.make(door, error="m")
    tally, top = None, standings.best[:MOST_PLACES]
    leader = board.leader(standings, named=not rules.anonymous)
    lines = [*filter(None, (leader, board.headline(standings), standings.luck))]
    if key := room().revealed:
        question = next(guess for guess in guesses.GUESSES if guess.key == key)
        tally = standings.guesses[question]
        # The lines about the quest and the top five would give away the answer.
        lines, top = [question.title, f"{tally.turnout}."], []
    right = tally.right if tally and room().with_result else None
    before = st.session_state.get("on_wall")
    st.session_state.on_wall = after = key, bool(right)
    points = board.points(standings)
    chart = axes.scaled(points, rules.limits)
    chart |= {
        "points": [*zip(points, axes.sides(chart), strict=True)],
        "legend": sorted({backend for *_, backend in points}),
    }
    page = paper.template(Path(__file__).with_name("projector.html")).render(
        classroom=classroom,
        rules=rules,
        colors=charts.palette(),
        joining=classroom.is_open and not (standings.best or tally),
        lines=lines,
        qr=code.svg_data_uri(scale=4, border=2, dark=charts.LIGHT.text, light="white"),
        door=door,
        address=joining.address("Class").partition("://")[2],
        joined=len(standings.names),
        tally=tally,
        right=right or ((), ""),
        is_new=bool(right) and after != before,  # so that it's an event
        chart=chart,
        place=standings.place,
        names=standings.names,
        mistakes=None if tally else _mistakes(standings),
        top=top,
        scripts={} if tally else _passed(standings),
        now=_now(standings, in_short=tally is not None) if classroom.is_open else [],
    )
    st.html(page)


def _now(standings: Standings, in_short: bool) -> list[str]:
    """Lines about the queue; `in_short`, a line that has room beside guesses."""
    if not in_short or not standings.queue:
        return board.queue_lines(standings, on_wall=True)
    waiting = sum(job.place > 0 for job in standings.queue)
    paused = " (a teacher paused the queue)" if engine().paused else ""
    return [f"{len(standings.queue) - waiting} running, {waiting} waiting{paused}"]


def _passed(standings: Standings) -> dict[str, list[str]]:
    """The sorted names of those who passed, for each script that somebody tried."""
    return {
        title: sorted(
            standings.names[who]
            for who, own in members.items()
            if own.solved and who in standings.names
        )
        for title, members in standings.scripts.items()
        if any(own.tries for own in members.values())
    }


def _mistakes(standings: Standings) -> tuple[str, str] | None:
    """A sentence on how many images the newest model gets wrong, and a base64 PNG.

    The PNG shows some of these images. None if there is no run, if no image is wrong,
    or if the workers can't give the images.
    """
    run = runs.run(standings.newest)
    if run is None or engine().machine() is None:
        return None
    name = standings.names.get(run.job.owner, "")
    whose = f", by {name}," if name and not standings.classroom.rules.anonymous else ""
    with suppress(ExplainedError):
        _, labels = image_wall.images(run.config.task)
        if wrong := sorted(image_wall.wrong(run, labels) or ()):
            some = tuple(wrong[:MOST_MISTAKES])
            png = _picture(run.config.task, some, charts.palette())
            count = f"{len(wrong)} of {len(labels)} images wrong"
            count += f", such as these {len(some)}" * (len(wrong) > len(some))
            return f"The newest model{whose} gets {count}", png
    return None


@lru_cache(maxsize=8)  # since the wall is drawn every second
def _picture(task: str, places: tuple[int, ...], colors: charts.Palette) -> str:
    """A base64 PNG of the test images at these places, in one row."""
    pixels, _ = image_wall.images(task)
    row = image_wall.montage(pixels[list(places)], colors, columns=MOST_MISTAKES)
    return b64encode(image_wall.png(row)).decode()
