"""Answers that a visitor finds again after a reload, and in another tab."""

from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any

import streamlit as st

from core.store.codec import StoreError
from core.ui.server import noticed, store, visitor_of_cookie


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


def renew() -> None:
    """Read the answers again: another tab of this visitor may have given some."""
    if visitor := visitor_of_cookie():
        with suppress(StoreError):  # what this tab knows has to do
            of_visitor().update(store().answers.of(visitor))


def keep(key: str, answer: Any) -> None:
    """Store an answer; without a cookie, only until the tab is closed."""
    if visitor := visitor_of_cookie():
        with noticed("This answer was not stored."):
            store().answers.keep(visitor, key, answer)
    of_visitor()[key] = answer


def chosen(key: str, options: Collection[Any]) -> Any | None:
    """The option that a widget's callback got; None if it got anything else.

    Programs can send any value, and Streamlit compares it with the options only when it
    draws the widget, after the callback.
    """
    value = st.session_state.get(key)
    return value if value in tuple(options) else None


def keep_chosen(key: str, options: Collection[Any]) -> None:
    """Store what was chosen, in the callback of the widget with this key."""
    if (answer := chosen(key, options)) is not None:
        keep(key, answer)


def radio(label: str, options: Sequence[Any], key: str, **more: Any) -> Any | None:
    """Draw a choice that keeps its answer; returns the answer, or None."""
    answer = of_visitor().get(key)
    index = options.index(answer) if answer in options else None
    settings: dict[str, Any] = {"on_change": keep_chosen, "args": (key, options)}
    value = st.radio(label, options, index=index, key=key, **settings | more)
    if value is not None and answer is None:
        # A click that came right after may have ended the callback. Streamlit doesn't
        # call it again.
        keep(key, value)
    return value


def toggle(label: str, key: str) -> bool:
    """Draw a switch that keeps its state, off at first; returns whether it is on."""
    more: dict[str, Any] = {"on_change": keep_chosen, "args": (key, (False, True))}
    return st.toggle(label, is_on(key), key=key, **more)


def is_on(key: str) -> bool:
    """Whether the switch with this key is on, even before it is drawn."""
    return bool(st.session_state.get(key, of_visitor().get(key, False)))
