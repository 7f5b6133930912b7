"""What all sessions of this server share, and how they are told apart."""

import hashlib
import uuid

import streamlit as st

from core.engine import Engine


@st.cache_resource(show_spinner=False, on_release=Engine.close)
def engine() -> Engine:
    """The one engine of this server; the first page that opens starts it."""
    return Engine()


def visitor() -> str:
    """A name for this browser: the same in all its tabs, and after a reload.

    It is made of the cookie that Streamlit sets against forged requests, which no other
    browser has. A session without that cookie has a name of its own.
    """
    cookie = st.context.cookies.get("_streamlit_xsrf")
    if isinstance(cookie, str):  # tests of pages have a stand-in here
        return hashlib.sha256(cookie.encode()).hexdigest()[:16]
    return st.session_state.setdefault("visitor", uuid.uuid4().hex)
