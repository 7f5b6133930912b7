"""Double clicks: the second click must not press what the first one put there."""

import time
from collections.abc import Callable

import streamlit as st

DOUBLE_CLICK_SECONDS = 0.6  # systems take two clicks within 0.5 s for one double click


def once(do: Callable[..., object], *arguments: object) -> None:
    """Call `do`, unless the visitor clicked just before, on this button or another.

    The callback of buttons after whose click another button may stand there, such as
    "Cancel" in the place of "Start", or the same button with another meaning.
    """
    now, state = time.monotonic(), st.session_state
    before, state.clicked_at = state.get("clicked_at"), now
    if before is None or now - before >= DOUBLE_CLICK_SECONDS:
        do(*arguments)
