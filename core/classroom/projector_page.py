"""The class on the wall of the room: large, live, and without a sidebar."""

import psutil
import streamlit as st

from core.classroom import board_page as board
from core.classroom import joining_page as joining
from core.classroom.standings_page import Standings
from core.data.fashion_mnist import CLASSES  # the sprites have the same
from core.errors import ExplainedError
from core.lessons.device import machine_page as devices
from core.ui import format, runs, wall
from core.ui.course import CLASS, link
from core.ui.frame import LOGO
from core.ui.server import engine, room, visitor
from core.words import Words

words = Words(__file__)

MISTAKES = 10  # images, at most


def draw() -> None:
    """For members and teachers alone: the code to join with is on it."""
    st.set_page_config(
        page_title="Class · to(device)",
        page_icon=LOGO,
        layout="wide",
        initial_sidebar_state="collapsed",
    )
    opened = room().open
    if opened is None or not room().may_see(visitor()):
        st.title("Class")
        st.markdown(words("projector.not_in"))
        link(CLASS, "Class")
        return
    st.title(opened.name)
    board.live(_wall)


def _wall(standings: Standings) -> None:
    opened = standings.opened
    left, right = st.columns([7, 3], gap="large")
    with left:
        st.header(board.headline(standings).replace("**", ""), anchor=False)
        board.chart(standings, on_wall=True)
        _mistakes(standings)
    with right:
        address = joining.qr_code(opened).partition("?")[0]
        st.title(opened.code, anchor=False)
        joined = f"{len(standings.names)} of {opened.size} have joined."
        st.markdown(f"{address}  \n{joined}")
        st.header("Right now", anchor=False)
        for line in board.queue_lines(standings, on_wall=True):
            st.markdown(f"#### {line}")
        _load()


def _mistakes(standings: Standings) -> None:
    """Images that the class's newest model gets wrong."""
    newest = runs.run(standings.newest)
    if newest is None or engine().machine() is None:
        return
    try:
        pixels, labels = wall.images(newest.config.task)
    except ExplainedError:
        return
    places = sorted(wall.wrong(newest, labels) or ())[:MISTAKES]
    if not places:
        return
    names = {} if standings.opened.rules.anonymous else standings.names
    answers = newest.history[-1].wall
    sentences = [f"{CLASSES[answers[i]]}, not {CLASSES[labels[i]]}" for i in places]
    name = names.get(newest.job.owner, "Somebody")
    st.header(f"{name}'s newest model gets these wrong", anchor=False)
    said = f"It said: {'; '.join(sentences)}"
    wall.show(pixels[places], said, "content", columns=MISTAKES)
    st.markdown(f"#### It took the first for: {sentences[0]}.")


def _load() -> None:
    """How busy each device is."""
    try:
        loads = devices.live()
    except ExplainedError:
        return
    machine = engine().machine()
    for device in machine.devices if machine else ():
        load = loads.get(device.device)
        busy = load.busy_percent if load else None
        if device.backend == "CPU":
            busy = round(psutil.cpu_percent())
        parts = [] if busy is None else [f"{busy}% busy"]
        if load and load.used_bytes is not None and load.total_bytes:
            used, total = format.size(load.used_bytes), format.size(load.total_bytes)
            parts.append(f"{used} of {total} used")
        st.markdown(f"**{device.device_name}**  \n{', '.join(parts)}")
