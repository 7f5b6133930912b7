"""How many people have a page of this course open now."""

from collections import Counter
from functools import cache
from threading import Lock

import streamlit as st

from core.ui.server import visitor


class People:
    """Who is here, each with the number of their tabs; safe to use from threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._tabs: Counter[str] = Counter()

    def come(self, who: str) -> None:
        """Another tab of theirs is open."""
        with self._lock:
            self._tabs[who] += 1

    def go(self, who: str) -> None:
        """One of their tabs was closed."""
        with self._lock:
            self._tabs[who] -= 1
            self._tabs += Counter()  # without those that are at 0

    def who(self) -> set[str]:
        """The visitors who have a page open."""
        with self._lock:
            return set(self._tabs)

    def __len__(self) -> int:
        with self._lock:
            return len(self._tabs)


@cache
def people() -> People:
    """Those of this server."""
    return People()


def _go(who: str) -> None:
    people().go(who)


@st.cache_resource(show_spinner=False, scope="session", on_release=_go)
def come() -> str:
    """Count this tab until it is closed; returns whose it is."""
    who = visitor()
    people().come(who)
    return who
