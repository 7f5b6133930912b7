"""Double clicks: the second click must not press what the first one put there."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import streamlit as st

DOUBLE_CLICK_SECONDS = 0.6  # systems take two clicks within 0.5 s for one double click
AT_ONCE_SECONDS = 1.5  # until a script runs whose click had to wait, on a busy machine


def once(do: Callable[..., object], *arguments: object) -> None:
    """Call `do`, unless the visitor clicked just before, on this button or another.

    The callback of buttons after whose click another button may stand there, such as
    "Cancel" in the place of "Start", or the same button with another meaning.
    """
    now, state = time.monotonic(), st.session_state
    before, state.clicked_at = state.get("clicked_at"), now
    if before is None or now - before >= DOUBLE_CLICK_SECONDS:
        do(*arguments)


@contextmanager
def taken(name: str) -> Iterator[None]:
    """Note when what a click has begun ends; a further click waits until then."""
    try:
        yield
    finally:
        st.session_state[f"ended_{name}"] = time.monotonic()


def waited_for(name: str) -> bool:
    """Whether this click came before what an earlier one began had ended."""
    ended = st.session_state.get(f"ended_{name}")
    return ended is not None and time.monotonic() - ended < AT_ONCE_SECONDS
