"""The four moves of a training step, each of which may be forgotten on purpose."""

import streamlit as st

from core.move.results import Forgotten
from core.ui.server import ask, explained
from core.ui.source import marked, source

MOVES = ("model", "inputs", "labels", "loss")


@st.cache_data(max_entries=64, ttl=600, show_spinner=False)
def attempt(device: str, moved: tuple[str, ...]) -> Forgotten:
    """How the step ends; the same for everybody."""
    return ask("core.move.forgotten:attempt", device, moved)


@st.fragment
def draw(device: str) -> None:
    """The switches, the step, and what torch says to it."""
    st.subheader("Forget a move")
    with st.container(horizontal=True):
        moved = tuple(
            move
            for move in MOVES
            if not st.toggle(f"Forget the {move}", key=f"forget_{move}")
        )
    with explained("The step was not tried"):
        found = attempt(device, moved)
        code, said = st.columns([6, 5])
        code.code(marked(source("core.move.forgotten:step"), (found.line,)))
        with said:
            _outcome(found, moved, device)


def _outcome(found: Forgotten, moved: tuple[str, ...], device: str) -> None:
    if found.error:
        st.error(
            f"`{found.error}`",
            title="It fails at the arrow",
            icon=":material/error:",
        )
        st.markdown(
            "The error shows up where two devices meet, not where the move is "
            "missing. Look at what that line uses, then for the `.to(device)` of each."
        )
    elif device == "cpu":
        st.success("It works: on the CPU a move changes nothing.")
    elif not moved:
        st.success(
            "It works: nothing was moved, so all four are on the CPU. Where there is "
            "an accelerator, it is only slow."
        )
    else:
        st.success(f"All four are on `{device}`: it works.")
    if device == "meta":
        st.markdown(
            ":small[`meta` stands in for an accelerator and words its errors "
            "differently. On a GPU you'd read “Expected all tensors to be on the same "
            "device”.]"
        )
