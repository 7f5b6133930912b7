"""The classes of this server: which one the page is about; made, opened and closed."""

from typing import Literal
from urllib.parse import urlsplit

import streamlit as st

from core.classroom.room import Teacher
from core.classroom.rules import Rules
from core.store.classes import Class
from core.ui.classroom import door
from core.ui.classroom.teacher import sign_in
from core.ui.classroom.teacher.acts import act
from core.ui.server import engine, room, store

CHOSEN = "teacher_class"
LOCAL = ("localhost", "127.0.0.1", "::1", None)


def choose() -> Class | None:
    """The class that the page is about, with what opens and closes it; None: none."""
    found = store().classes.all()
    st.session_state.setdefault(CHOSEN, _first(found))
    if st.session_state[CHOSEN] not in {each.id for each in found}:
        st.session_state[CHOSEN] = _first(found)
    names = {each.id: each.name for each in found}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if found:
            st.selectbox(
                "Class",
                list(names),
                format_func=names.__getitem__,
                key=CHOSEN,
                width=300,
            )
            with st.popover("New class", icon=":material/add:"):
                _new()
        st.button("Sign out", key="teacher_sign_out", on_click=sign_in.sign_out)
    if not found:
        st.markdown("**There is no class yet.** Make one, then open it.")
        with st.container(border=True, width=400):
            _new("primary")
        return None
    chosen = next(each for each in found if each.id == st.session_state[CHOSEN])
    _buttons(chosen)
    return chosen


def _first(found: list[Class]) -> str | None:
    """The one that is open, else the newest."""
    ordered = sorted(found, key=lambda each: not each.is_open)
    return ordered[0].id if ordered else None


def _new(type: Literal["primary", "secondary"] = "secondary") -> None:
    with st.form("new_class", border=False):
        st.text_input("Name", key="new_class_name", placeholder="Monday, room 2")
        st.number_input("How many may join", 1, 500, 30, key="new_class_size")
        st.form_submit_button("Make it", key="make_class", type=type, on_click=_make)


def _make() -> None:
    name, size = st.session_state.new_class_name, st.session_state.new_class_size

    def make(teacher: Teacher) -> None:
        st.session_state[CHOSEN] = room().create(teacher, name, size, Rules()).id

    act(make)


def _buttons(chosen: Class) -> None:
    """Open and close, pause and clear: the primary one is what comes next."""
    with st.container(horizontal=True, vertical_alignment="center"):
        if not chosen.is_open:
            st.button(
                "Open the class",
                type="primary",
                icon=":material/door_open:",
                key="open_class",
                on_click=act,
                args=(room().start, chosen.id),
            )
            return
        st.badge("Open", icon=":material/door_open:", color="gray")
        paused = room().paused
        st.button(
            "Resume the queue" if paused else "Pause the queue",
            icon=":material/play_arrow:" if paused else ":material/pause:",
            type="primary" if paused else "secondary",
            key="pause_queue",
            on_click=act,
            args=(room().pause, not paused),
        )
        st.button(
            "Clear the queue",
            icon=":material/clear_all:",
            key="clear_queue",
            on_click=act,
            args=(_clear,),
        )
        with st.popover("How to join", icon=":material/qr_code:"):
            _join(chosen)
        st.button(
            "Close the class",
            icon=":material/door_front:",
            key="close_class",
            on_click=act,
            args=(room().close, chosen.id),
        )


def _clear(teacher: Teacher) -> None:
    room().note(teacher, f"cleared the queue, {engine().clear()} jobs")


def _join(chosen: Class) -> None:
    link = door.draw(chosen)
    st.code(link, language=None, wrap_lines=True)
    if urlsplit(link).hostname in LOCAL:
        st.warning(
            "Only this machine can open that address. Open this page by the machine's "
            "address in the network, and the link is right.",
            icon=":material/wifi_off:",
        )
    st.markdown(
        f"Or open **Class** and type the code: **{chosen.code}**. "
        f"{chosen.joined} of {chosen.size} have joined."
    )
    st.link_button(
        "The view for the projector",
        door.address("Class", "projector=1"),
        icon=":material/cast:",
    )
