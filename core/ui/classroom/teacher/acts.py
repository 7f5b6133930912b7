"""What a teacher's buttons do: it is asked anew who presses them, and all is told."""

from collections.abc import Callable

import streamlit as st

from core.errors import ExplainedError
from core.ui.classroom.teacher import sign_in

SIGNED_OUT = "You are signed out, and nothing was done. Sign in again."
NOTICE = "teacher_notice"


def act(what: Callable[..., object], *arguments: object) -> None:
    """Do it as the teacher who is signed in; why it can't be done is for the page."""
    who = sign_in.teacher()
    try:
        if who is None:
            raise ExplainedError(SIGNED_OUT)
        what(who, *arguments)
    except (ExplainedError, ValueError) as error:
        st.session_state[NOTICE] = str(error)


def tell() -> None:
    """What could not be done, once."""
    if notice := st.session_state.pop(NOTICE, ""):
        st.warning(notice, icon=":material/info:")
