"""Controls that stand on several pages, all of one width."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.config import IMAGE_MODELS, IMAGE_TASKS
from core.ui import format

WIDTH = 152  # pixels: four in a row beside the sidebar, two on a phone


def row() -> DeltaGenerator:
    """Where a guess, settings and buttons stand side by side."""
    return st.container(horizontal=True, vertical_alignment="bottom")


def choice(label: str, key: str, options: Sequence[Any], **more: Any) -> Any:
    """One of some options, by the names that people know them by."""
    settings: dict[str, Any] = {
        "format_func": lambda value: format.NAMES.get(value, value),
        "width": WIDTH,
    }
    if _kept().get(key) in options:
        more["index"] = list(options).index(_kept()[key])
    found = st.selectbox(label, options, key=key, **settings | more)
    _kept()[key] = found
    return found


def task(key: str, has_data: bool, **more: Any) -> str:
    """One of the tasks on images that can be trained on here."""
    return choice("Task", key, IMAGE_TASKS if has_data else ("sprites",), **more)


def model(key: str, **more: Any) -> str:
    """One of the models for images."""
    return choice("Model", key, IMAGE_MODELS, **more)


def budget(key: str, seconds: Sequence[int]) -> float:
    """For how long something is measured, in seconds."""
    chosen = choice("Time", key, seconds, index=1, format_func="{} seconds".format)
    return float(chosen)


def number(label: str, key: str, value: int, step: int, **more: Any) -> int:
    """A whole number, without limits: whoever takes it says what is wrong with it."""
    value = _kept().get(key, value)
    found = st.number_input(
        label, value=value, step=step, key=key, **{"width": WIDTH} | more
    )
    _kept()[key] = int(found)
    return int(found)


def _kept() -> dict[str, Any]:
    """What controls say, by key: Streamlit forgets it of one that is not drawn."""
    return st.session_state.setdefault("controls", {})


@contextmanager
def startable() -> Iterator[None]:
    """What a ValueError in it says is told instead, and that nothing can be started."""
    try:
        yield
    except ValueError as error:
        st.warning(f"{error} Nothing can be started.", icon=":material/info:")
