"""Answers that a visitor finds again after a reload, and in another tab."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from core.store.codec import StoreError
from core.ui.server import store, visitor_of_cookie


def of_visitor() -> dict[str, Any]:
    """Return {key: answer} of this visitor, read from the database once per session."""
    state = st.session_state
    if "answers" not in state:
        visitor = visitor_of_cookie()
        try:
            stored = store().answers.of(visitor) if visitor else {}
        except StoreError:  # ask again with the next page
            return state.setdefault("answers_meanwhile", {})
        state.answers = stored | state.pop("answers_meanwhile", {})
    return state.answers


def keep(key: str, answer: Any) -> None:
    """Store an answer; without a cookie, only until the tab is closed."""
    of_visitor()[key] = answer
    if visitor := visitor_of_cookie():
        store().answers.keep(visitor, key, answer)


def _keep(key: str) -> None:
    keep(key, st.session_state[key])


def radio(label: str, options: Sequence[Any], key: str, **more: Any) -> Any | None:
    """Draw a choice that keeps its answer; returns the answer, or None."""
    answer = of_visitor().get(key)
    index = options.index(answer) if answer in options else None
    return st.radio(
        label, options, index=index, key=key, on_change=_keep, args=(key,), **more
    )


def toggle(label: str, key: str) -> bool:
    """Draw a switch that keeps its state, off at first; returns whether it is on."""
    return st.toggle(label, is_on(key), key=key, on_change=_keep, args=(key,))


def is_on(key: str) -> bool:
    """Whether the switch with this key is on, even before it is drawn."""
    return bool(st.session_state.get(key, of_visitor().get(key, False)))
