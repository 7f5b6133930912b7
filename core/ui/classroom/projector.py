"""The class on the wall of the room: large, live, and without a sidebar."""

import psutil
import streamlit as st

from core.data.fashion_mnist import CLASSES  # the sprites have the same
from core.errors import ExplainedError
from core.store.classes import Class
from core.store.codec import StoreError
from core.ui import format, montage, runs
from core.ui import machine as devices
from core.ui.charts.base import palette
from core.ui.classroom import board, door, gathered
from core.ui.classroom.gathered import Gathered
from core.ui.course import CLASS
from core.ui.frame import LOGO
from core.ui.home import wall
from core.ui.links import link
from core.ui.looks import PATIENT_SECONDS
from core.ui.server import engine, room, visitor

HEIGHT, PIXELS = 460, 18  # of the chart, and of its letters
MISTAKES = 10  # pictures of the newest model, at most
NOT_HERE = (
    "The projector shows a class that is open, to its teacher and to who is in it. "
    "Sign in on **Teacher**, or join on **Class**."
)


def draw() -> None:
    """All of it; to nobody else, since the code to join with is on it."""
    st.set_page_config(
        page_title="Class · to(device)",
        page_icon=LOGO,
        layout="wide",
        initial_sidebar_state="collapsed",
    )
    opened = _opened()
    if opened is None:
        st.title("Class")
        st.markdown(NOT_HERE)
        link(CLASS, "Class")
        return
    st.title(f"{opened.name}")

    @st.fragment(run_every=PATIENT_SECONDS)
    def look() -> None:
        now = _opened()
        if now is None or now.id != opened.id:
            st.rerun()
        try:
            _all(gathered.now(), now)
        except StoreError as error:
            st.warning(str(error), icon=":material/database_off:")

    look()


def _opened() -> Class | None:
    """The class, if this visitor may see it."""
    me = visitor()
    return room().open if room().is_teacher(me) or room().member(me) else None


def _all(found: Gathered, opened: Class) -> None:
    anonymous = opened.rules.anonymous
    left, right = st.columns([7, 3], gap="large")
    with left:
        st.header(board.headline(found).replace("**", ""), anchor=False)
        board.chart(found, "", HEIGHT, PIXELS, anonymous)
        _mistakes(found, anonymous)
    with right:
        _door(opened, len(found.names))
        st.header("Right now", anchor=False)
        for line in board.queue_lines(found, "", anonymous):
            st.markdown(f"#### {line}")
        _load()


def _door(opened: Class, joined: int) -> None:
    """How to come in."""
    link = door.draw(opened)
    st.title(opened.code, anchor=False)
    st.markdown(f"{link.partition('?')[0]}  \n{joined} of {opened.size} have joined.")


def _mistakes(found: Gathered, anonymous: bool) -> None:
    """The images of the wall that the newest model of the class gets wrong."""
    newest = runs.run(found.newest)
    if newest is None or engine().machine() is None:
        return
    try:
        pixels, labels = wall.images(newest.config.task)
    except ExplainedError:
        return
    places = sorted(wall.wrong(newest, labels) or ())[:MISTAKES]
    if not places:
        return
    name = "Somebody" if anonymous else found.names.get(newest.job.owner, "Somebody")
    said = newest.history[-1].wall
    told = [f"{CLASSES[said[at]]}, not {CLASSES[labels[at]]}" for at in places]
    st.header(f"{name}'s newest model gets these wrong", anchor=False)
    picture = montage.montage(pixels[places], frozenset(), palette(), columns=MISTAKES)
    montage.show(montage.png(picture), f"It said: {'; '.join(told)}", "content")
    st.markdown(f"#### It took the first for: {told[0]}.")


def _load() -> None:
    """How busy the machine is."""
    try:
        loads = devices.live()
    except ExplainedError:
        return
    machine = engine().machine()
    for each in machine.devices if machine else ():
        load = loads.get(each.device)
        busy = load.busy_percent if load else None
        if each.backend == "CPU":
            busy = round(psutil.cpu_percent())
        told = [] if busy is None else [f"{busy}% busy"]
        if load and load.used_bytes is not None and load.total_bytes:
            used, whole = format.size(load.used_bytes), format.size(load.total_bytes)
            told.append(f"{used} of {whole} used")
        st.markdown(f"**{each.device_name}**  \n{', '.join(told)}")
