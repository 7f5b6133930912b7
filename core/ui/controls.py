"""Controls that several pages use, and files to download."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from mimetypes import guess_type
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.classroom.rules import SHARED
from core.config import IMAGE_MODELS, IMAGE_TASKS
from core.measure.rows import Row
from core.ui import class_rules, format
from to_device.errors import ExplainedError
from to_device.words import Words

words = Words(__file__)
NO_COOKIE = words("controls.no_cookie")
FORM_STYLE = Path(__file__).with_name("forms.css").read_text("utf-8")
MOST = 10**9  # the highest number that `number` returns
WIDTH = 152  # pixels: four controls fit beside the sidebar, two on a phone


def on_phone() -> bool:
    """Whether the browser is on a phone, where Streamlit stacks columns."""
    return "Mobi" in st.context.headers.get("User-Agent", "")


def row() -> DeltaGenerator:
    return st.container(horizontal=True, vertical_alignment="bottom")


def choice(
    label: str, key: str, options: Sequence[Any], setting: str = "", **more: Any
) -> Any:
    """Draw a choice, and return the chosen option.

    If the choice is for a `setting`, a class may allow fewer options, or hide
    the choice.
    """
    allowed = class_rules.among(setting, options)
    if len(allowed) < len(options):
        default = options[more.pop("index", 0)]
        more["index"] = allowed.index(default) if default in allowed else 0
    if class_rules.hides(setting):
        option = st.session_state.get(key)
        return option if option in allowed else allowed[more.get("index", 0)]
    settings: dict[str, Any] = {
        "format_func": lambda value: format.NAMES.get(value, value),
        "width": WIDTH,
        "persist_state": "session",
    }
    return st.selectbox(label, allowed, key=key, **settings | more)


def task(key: str, has_data: bool, **more: Any) -> str:
    tasks = IMAGE_TASKS if has_data else ("sprites",)
    return choice("Task", key, tasks, "task", **more)


def model(key: str, **more: Any) -> str:
    help = words("controls.model")
    return choice("Model", key, IMAGE_MODELS, "model", help=help, **more)


def budget(key: str, seconds: Sequence[int]) -> float:
    return float(choice("Time", key, seconds, index=1, format_func="{} seconds".format))


def number(
    label: str, key: str, value: int, step: int, setting: str = "", **more: Any
) -> int:
    """Draw a field for a whole number, and return the number.

    If the field is for a `setting`, a class may fix the number, or hide the field.
    """
    value = st.session_state.get(key, class_rules.at_most(setting, value))
    fixed = class_rules.fixed(setting) if setting in SHARED else None
    if fixed is not None:
        value = st.session_state[key] = fixed
        more["disabled"] = True
    if class_rules.hides(setting):
        return int(value)
    label = class_rules.limited(label, setting)
    settings: dict[str, Any] = {"width": WIDTH, "persist_state": "session"}
    settings |= {"step": float(step), "format": "%g"} | more
    entered = st.number_input(label, value=float(value), key=key, **settings)
    whole = int(max(-MOST, min(entered, MOST)))
    if entered != whole:
        st.warning(f"{label} must be a whole number. The app uses {whole:,} instead.")
    return whole


def form(name: str, action: str, fields: str, button: str) -> Callable[..., Any]:
    """Make a component: a form that posts `fields` (HTML) to the route `action`."""
    html = f'<form method="post" action="{action}">{fields}<button>{button}</button>'
    return st.components.v2.component(name, html=f"{html}</form>", css=FORM_STYLE)


@contextmanager
def startable(place: DeltaGenerator) -> Iterator[None]:
    """Draw a job's settings in the block. Say in `place` what is wrong."""
    try:
        yield
    except (ValueError, ExplainedError) as error:
        text = f"{error} You can't start until you fix this."
        place.warning(text, icon=":material/info:")


def download(label: str, data: Any, name: str, key: str, **more: Any) -> None:
    """A button that downloads a file called `name` and doesn't redraw the page."""
    st.download_button(
        label,
        data,
        name,
        key=key,
        on_click="ignore",
        **{"icon": ":material/download:", "mime": guess_type(name)[0]} | more,
    )


def download_rows(name: str, rows: list[Row]) -> None:
    """Draw buttons that download `rows` as CSV and as JSON, or nothing without rows.

    Every row says where, when, and how its figures were measured.
    """
    if not rows:
        return
    table = pd.DataFrame(rows).to_csv(index=False)
    text = json.dumps(rows, indent=1)
    with st.container(horizontal=True):
        download("CSV", table, f"{name}.csv", f"{name}_csv")
        download("JSON", text, f"{name}.json", f"{name}_json")
