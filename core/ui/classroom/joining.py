"""The door of the class: who may come in, and as whom."""

import streamlit as st

from core.errors import ExplainedError
from core.store.classes import Class, Member
from core.store.visitors import as_code
from core.ui.course import RUNS
from core.ui.frame import PROSE
from core.ui.links import link
from core.ui.server import room, visitor, visitor_of_cookie

WHAT = (
    "A class is a group that trains on this machine together, with everybody's best "
    "run on one chart. None is open right now; your teacher opens one, and shows you "
    "the link to it."
)
NO_COOKIE = (
    "Your browser sent no cookie, so you have this name until you reload or close this "
    "tab. To keep it, allow cookies for this address."
)
REFUSED = "class_refused"  # why joining or a new name did not work, until it is told


def draw() -> bool:
    """Join, or who I am; whether the visitor may see the class that is open."""
    opened, me = room().open, visitor()
    member = room().member(me)
    if why := st.session_state.pop(REFUSED, ""):
        st.warning(why, icon=":material/info:")
    if opened is None or not (member or room().is_teacher(me)):
        _ended()
        _ask_in(opened)
        return False
    st.session_state.class_of = opened.name
    st.query_params.pop("code", None)
    if member:
        _as_whom(member, opened)
    else:
        st.markdown(f"You see **{opened.name}** as its teacher.")
    return True


def _ended() -> None:
    """To whoever was in a class a moment ago."""
    if name := st.session_state.pop("class_of", ""):
        text = f"**{name}** has ended. Your runs are there until it is deleted:"
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(text)
            link(RUNS)


def _ask_in(opened: Class | None) -> None:
    """The button to join with the code of the address, else a field for one."""
    given = st.query_params.get("code", "")
    fits = opened is not None and as_code(given) == opened.code
    if given and not fits:
        try:
            st.warning(room().why_not(given), icon=":material/info:")
        except ExplainedError as error:
            st.warning(str(error), icon=":material/info:")
    if opened is None:
        st.markdown(WHAT, width=PROSE)
        return
    with st.container(border=True, width=PROSE):
        if fits:
            st.subheader(f"Join {opened.name}", anchor=False)
        else:
            st.subheader("Join the class", anchor=False)
            st.text_input(
                "The code that your teacher shows",
                key="class_code",
                placeholder="lusab-babad",
                max_chars=40,
            )
        st.markdown(
            "You get a made-up name, and can change it. The others see it beside your "
            "best run. There is no account and no e-mail."
        )
        st.button(
            "Join",
            type="primary",
            icon=":material/login:",
            key="join_class",
            on_click=_join,
            args=(given if fits else None,),
        )


def _join(code: str | None) -> None:
    typed = st.session_state.get("class_code", "") if code is None else code
    try:
        room().join(typed, visitor())
    except ExplainedError as error:
        st.session_state[REFUSED] = str(error)


def _as_whom(member: Member, opened: Class) -> None:
    """The name, and the way to another."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"You are **{member.name}** in **{opened.name}**.", width="content")
        with st.popover("Change your name", icon=":material/edit:", type="tertiary"):
            st.text_input("Your name in this class", key="class_name", max_chars=40)
            st.button("Use this name", key="rename_member", on_click=_rename)
    if not visitor_of_cookie():
        st.info(NO_COOKIE, icon=":material/cookie_off:")


def _rename() -> None:
    try:
        room().rename(visitor(), st.session_state.class_name)
    except ExplainedError as error:
        st.session_state[REFUSED] = str(error)
