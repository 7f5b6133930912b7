"""The outline and the badge around what ran on the simulated accelerator."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import streamlit as st

from core.measure.environment import Machine
from to_device.errors import quoted
from to_device.names import SIMULATED
from to_device.sim.simulation import in_cuda_words
from to_device.words import Words

STYLE = Path(__file__).with_name("simulated.css")
MOST_QUOTED = 600  # characters; a longer message from CUDA is cut
words = Words(__file__)


@contextmanager
def outline(
    key: str, explained: bool = False, device: str = SIMULATED, badged: bool = True
) -> Iterator[None]:
    """Draw the block in a dashed outline, if `device` is the simulated accelerator.

    `explained` adds what the outline means, for pages that don't call `tell`. If
    `badged` is false, the caller's block draws the badge itself.
    """
    if device != SIMULATED:
        yield
        return
    st.html(STYLE)
    with st.container(border=True, key=f"simulated_{key}"):
        if badged:
            badge(explained)
        yield


def badge(explained: bool = False) -> None:
    """Draw the word "simulated", alone or with its meaning beside it."""
    if explained:
        mark = ":violet-badge[:material/memory: simulated]"
        st.markdown(f"{mark} {words('simulated.explained')}")
        return
    help = "This device computes on the CPU but obeys the rules of a GPU."
    st.badge("simulated", icon=":material/memory:", color="violet", help=help)


def tell(machine: Machine, width: int | Literal["stretch"] = "stretch") -> None:
    """Say what the outline means, or why a machine without a GPU can't simulate one."""
    if machine.simulates:
        st.markdown(words("simulated.explained"), width=width)
    elif machine.why_not and not machine.has_accelerator:
        st.caption(machine.why_not)


def message(raised: str) -> None:
    """Draw what was raised on the simulated device, and what CUDA would say instead."""
    st.code(raised, language=None, wrap_lines=True)
    cuda_wording(raised)


def cuda_wording(raised: str) -> None:
    """If CUDA's message would differ from the simulated device's, draw it as well."""
    if (cuda := in_cuda_words(raised)) != raised:
        message = quoted(" ".join(cuda.split()), most=MOST_QUOTED)
        st.markdown(f":small[On an NVIDIA GPU, the message is: {message}]")
