"""Visitors who have a page of this course open now."""

from collections import Counter
from threading import Lock

import streamlit as st

from core.ui.server import visitor

_tabs: Counter[str] = Counter()  # open ones, by visitor
_lock = Lock()


def who() -> set[str]:
    with _lock:
        return set(_tabs)


def count(visitor: str, tabs: int) -> None:
    """So many tabs more of a visitor, or fewer."""
    with _lock:
        _tabs[visitor] += tabs
        if not _tabs[visitor]:
            del _tabs[visitor]


@st.cache_resource(
    show_spinner=False, scope="session", on_release=lambda who: count(who, -1)
)
def come() -> str:
    """Count this tab until it is closed; returns its visitor."""
    who = visitor()
    count(who, 1)
    return who
