"""Joining a class by a link, a code, or a phone, and choosing a name in it."""

from pathlib import Path
from urllib.parse import urlsplit

import streamlit as st

from core.classroom.names import LONGEST
from core.serving.streamlit_internals import internal_address
from core.store.tables import Class
from core.store.visitors import as_code
from core.ui.course import RUNS, TEACHER, link
from core.ui.frame import PROSE
from core.ui.polling import PATIENT_SECONDS
from core.ui.server import (
    explained,
    noticed,
    room,
    tell_error,
    tell_notice,
    visitor,
    visitor_of_cookie,
)
from to_device.words import Words

words = Words(__file__)

LOCAL = ("localhost", "127.0.0.1", "::1")
# Docker and Podman make these files in a container, whose address nobody else can reach
OF_CONTAINERS = (Path("/.dockerenv"), Path("/run/.containerenv"))


@st.fragment(run_every=PATIENT_SECONDS)
def _wait_for_class(before: str) -> None:
    """Redraw the page once another class opens, for those who came too early."""
    classroom = room().open
    if (classroom.id if classroom else "") != before:
        st.rerun()


def draw() -> bool:
    """Draw the form to join; a member sees a form to change their name instead.

    Returns whether the visitor may see the class.
    """
    me, open_class = visitor(), room().open
    classroom = room().board_for(me)
    tell_notice()
    if classroom is None:
        if last := st.session_state.pop("class_of", None):
            is_out = open_class is not None and open_class.id == last.id
            why = (
                words("joining.removed")
                if is_out
                else "**{name}** has ended. You can see your runs here until the "
                "class is deleted:"
            )
            with st.container(horizontal=True, vertical_alignment="center"):
                st.markdown(why.format(name=last.name))
                link(RUNS)
        _ask_in(open_class)
        _wait_for_class(open_class.id if open_class else "")
        link(TEACHER, "Sign in as the teacher")
        return False
    st.session_state.class_of = classroom
    st.query_params.pop("code", None)
    name = classroom.name
    if not classroom.is_open:
        my_name = room().names(classroom.id).get(me)
        you = f", {my_name}" if my_name else ""
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(
                f"**{name}** has ended{you}. This is the final board.", width="content"
            )
            link(RUNS, "Your runs")
        return True
    if (member := room().member(me)) is None:
        st.markdown(f"You see **{name}** because you are its teacher.")
        return True
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"You are **{member.name}** in **{name}**.", width="content")
        # A new name changes the popover's key, and so closes the popover.
        label, key = "Change your name", f"rename_{member.name}"
        box = st.popover(label, icon=":material/edit:", type="tertiary", key=key)
        with box, st.form("rename", border=False):
            label = "Your name in this class"
            st.text_input(label, key="class_name", max_chars=LONGEST)
            tell_error("class_name_error")
            label = "Use this name"
            st.form_submit_button(label, key="rename_member", on_click=_rename)
    st.caption(words("joining.code"))
    if not visitor_of_cookie():
        st.info(words("joining.no_cookie"), icon=":material/cookie_off:")
    return True


def _ask_in(open_class: Class | None) -> None:
    code = st.query_params.get("code", "")
    fits = open_class is not None and as_code(code) == open_class.code
    if code and not fits:
        with explained("The list of classes can't be read right now"):
            st.warning(room().why_not(code), icon=":material/info:")
    if open_class is None:
        st.markdown(words("joining.none_open"), width=PROSE)
        return
    with st.form("join", width=PROSE):
        name = open_class.name if fits else "the class"
        st.header(f"Join {name}", anchor=False)
        if not fits:
            st.text_input(
                "The code that your teacher gave you",
                key="class_code",
                placeholder="Such as: lusab-babad",
                max_chars=40,
            )
        tell_error("class_code_error")
        st.markdown(words("joining.what"))
        st.form_submit_button(
            "Join",
            type="primary",
            icon=":material/login:",
            key="join_class",
            on_click=_join,
            args=(code if fits else None,),
        )


def _join(code: str | None) -> None:
    if code is None:
        st.query_params.pop("code", None)  # a link's wrong code has been told
    with noticed(at="class_code_error"):
        room().join(code or st.session_state.get("class_code", ""), visitor())


def _rename() -> None:
    with noticed(at="class_name_error"):
        room().rename(visitor(), st.session_state.class_name)


def address(page: str, query: str = "") -> str:
    """A page's address for other machines, even if this browser uses localhost."""
    base = (st.context.url or "").partition("?")[0].rpartition("/")[0]
    url, ip = urlsplit(base), internal_address()
    is_local = st.get_option("server.address") in LOCAL
    is_inside = any(file.exists() for file in OF_CONTAINERS)
    if ip and url.hostname in LOCAL and not (is_local or is_inside):
        base = url._replace(netloc=f"{ip}:{url.port or 80}").geturl()
    return f"{base}/{page}?{query}" if query else f"{base}/{page}"


def link_to(classroom: Class) -> str:
    return address("Class", f"code={classroom.code}")
