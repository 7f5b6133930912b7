"""Choices that a visitor finds again: after a reload, and in another tab."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from core.store.codec import StoreError
from core.ui.server import store, visitor_of_cookie

KEPT = "answers"  # of this session, read once from what the server remembers


def given() -> dict[str, Any]:
    """What this visitor has answered, by the keys of the questions."""
    if KEPT not in st.session_state:
        st.session_state[KEPT] = _read(visitor_of_cookie())
    return st.session_state[KEPT]


def _read(who: str) -> dict[str, Any]:
    try:
        return store().answers.of(who) if who else {}
    except StoreError:
        return {}


def keep(key: str, answer: Any) -> None:
    """Remember an answer; of who has no cookie, until the tab is closed."""
    given()[key] = answer
    if who := visitor_of_cookie():
        store().answers.keep(who, key, answer)


def radio(label: str, options: Sequence[Any], key: str, **more: Any) -> Any | None:
    """A choice of one among some, nothing chosen at first; `more` is for st.radio."""
    before = given().get(key)
    at = options.index(before) if before in options else None
    return st.radio(
        label, options, index=at, key=key, on_change=_chosen, args=(key,), **more
    )


def toggle(label: str, key: str) -> bool:
    """A switch, off at first."""
    return st.toggle(label, is_on(key), key=key, on_change=_chosen, args=(key,))


def is_on(key: str) -> bool:
    """Whether the switch of that key is on, drawn or not."""
    return bool(st.session_state.get(key, given().get(key, False)))


def _chosen(key: str) -> None:
    keep(key, st.session_state[key])
