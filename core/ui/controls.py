"""Controls that stand on several pages, all of one width."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.config import IMAGE_MODELS, IMAGE_TASKS
from core.ui import format
from core.ui.classroom import held

WIDTH = 152  # pixels: four in a row beside the sidebar, two on a phone


def on_phone() -> bool:
    """Whether what stands side by side elsewhere stands one below the other here."""
    return "Mobi" in st.context.headers.get("User-Agent", "")


def row() -> DeltaGenerator:
    """Where a guess, settings and buttons stand side by side."""
    return st.container(horizontal=True, vertical_alignment="bottom")


def choice(
    label: str, key: str, options: Sequence[Any], setting: str = "", **more: Any
) -> Any:
    """One of some options, by the names that people know them by.

    A class may leave fewer of a `setting` to choose, or hide the control.
    """
    allowed = held.among(setting, options)
    if len(allowed) < len(options):
        default = options[more.pop("index", 0)]
        more["index"] = allowed.index(default) if default in allowed else 0
        options = allowed
    if held.hides(setting):
        kept = _kept().get(key)
        return kept if kept in options else options[more.get("index", 0)]
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
    tasks = IMAGE_TASKS if has_data else ("sprites",)
    return choice("Task", key, tasks, "task", **more)


def model(key: str, **more: Any) -> str:
    """One of the models for images."""
    return choice("Model", key, IMAGE_MODELS, "model", **more)


def budget(key: str, seconds: Sequence[int]) -> float:
    """For how long something is measured, in seconds."""
    chosen = choice("Time", key, seconds, index=1, format_func="{} seconds".format)
    return float(chosen)


def number(
    label: str, key: str, value: int, step: int, setting: str = "", **more: Any
) -> int:
    """A whole number, without limits: whoever takes it says what is wrong with it.

    A class may fix a `setting`, or hide the control.
    """
    value = _kept().get(key, held.at_most(setting, value))
    if (fixed := held.shared(setting)) is not None:
        value = st.session_state[key] = fixed
        more["disabled"] = True
    if held.hides(setting):
        return int(value)
    found = st.number_input(
        label, value=value, step=step, key=key, **{"width": WIDTH} | more
    )
    _kept()[key] = int(found)
    return int(found)


def _kept() -> dict[str, Any]:
    """What controls say, by key: Streamlit forgets it of one that is not drawn."""
    return st.session_state.setdefault("controls", {})


@contextmanager
def startable(place: DeltaGenerator) -> Iterator[None]:
    """What a ValueError in it says is told in that place: nothing can be started."""
    try:
        yield
    except ValueError as error:
        place.warning(f"{error} Nothing can be started.", icon=":material/info:")
