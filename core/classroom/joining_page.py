"""Joining a class: the way in by link, code or phone, and the name in it."""

import segno
import streamlit as st

from core.errors import ExplainedError
from core.store.tables import Class
from core.store.visitors import as_code
from core.ui.charts import LIGHT
from core.ui.course import RUNS, link
from core.ui.frame import PROSE
from core.ui.server import noticed, room, tell_notice, visitor, visitor_of_cookie
from core.words import Words

words = Words(__file__)

QR_PIXELS = 220


def draw() -> bool:
    """Join, or change one's name; whether the visitor may see the open class."""
    opened, me = room().open, visitor()
    tell_notice()
    if opened is None or not room().may_see(me):
        if name := st.session_state.pop("class_of", ""):
            with st.container(horizontal=True, vertical_alignment="center"):
                st.markdown(words("joining.ended", name=name))
                link(RUNS)
        _ask_in(opened)
        return False
    st.session_state.class_of = opened.name
    st.query_params.pop("code", None)
    if (member := room().member(me)) is None:
        st.markdown(f"You see **{opened.name}** as its teacher.")
        return True
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"You are **{member.name}** in **{opened.name}**.", width="content")
        with st.popover("Change your name", icon=":material/edit:", type="tertiary"):
            st.text_input("Your name in this class", key="class_name", max_chars=40)
            st.button("Use this name", key="rename_member", on_click=_rename)
    if not visitor_of_cookie():
        st.info(words("joining.no_cookie"), icon=":material/cookie_off:")
    return True


def _ask_in(opened: Class | None) -> None:
    """The button to join with the address's code, or with one to type."""
    code = st.query_params.get("code", "")
    fits = opened is not None and as_code(code) == opened.code
    if code and not fits:
        try:
            st.warning(room().why_not(code), icon=":material/info:")
        except ExplainedError as error:
            st.warning(str(error), icon=":material/info:")
    if opened is None:
        st.markdown(words("joining.none_open"), width=PROSE)
        return
    with st.container(border=True, width=PROSE):
        name = opened.name if fits else "the class"
        st.subheader(f"Join {name}", anchor=False)
        if not fits:
            st.text_input(
                "The code that your teacher shows",
                key="class_code",
                placeholder="lusab-babad",
                max_chars=40,
            )
        st.markdown(words("joining.what"))
        st.button(
            "Join",
            type="primary",
            icon=":material/login:",
            key="join_class",
            on_click=_join,
            args=(code if fits else None,),
        )


def _join(code: str | None) -> None:
    with noticed():
        room().join(code or st.session_state.get("class_code", ""), visitor())


def _rename() -> None:
    with noticed():
        room().rename(visitor(), st.session_state.class_name)


def address(page: str, query: str = "") -> str:
    """A page of this server, as this browser reaches it."""
    base = (st.context.url or "").partition("?")[0].rpartition("/")[0]
    return f"{base}/{page}{'?' * bool(query)}{query}"


def qr_code(opened: Class) -> str:
    """Draw the code for phones; returns the address in it."""
    link = address("Class", f"code={opened.code}")
    # Dark on light in both themes: not every phone reads the inverse.
    svg = segno.make(link, error="m").svg_inline(
        scale=6, border=4, dark=LIGHT.text, light=LIGHT.page
    )
    st.image(svg, alt=f"A code for phones to open {link}", width=QR_PIXELS)
    return link
