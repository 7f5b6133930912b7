"""A field for code: one width for all letters, and a number beside each line.

Streamlit has none. Its text areas are in the font of the page, which no setting and no
theme changes.
"""

import re
from collections.abc import Collection
from pathlib import Path

import streamlit as st

_HERE = Path(__file__)
_FIELD = st.components.v2.component(
    "code_editor",
    html='<div class="code"><ol aria-hidden="true"></ol>'
    '<textarea wrap="off" spellcheck="false" autocapitalize="off"></textarea></div>',
    css=_HERE.with_suffix(".css").read_text("utf-8"),
    js=_HERE.with_suffix(".js").read_text("utf-8"),
)


def draw(
    label: str,
    key: str,
    value: str = "",
    *,
    most: int | None = None,
    placeholder: str = "",
    marked: Collection[int] = (),
) -> None:
    """The field, in a form: what is in it counts once that is sent.

    It holds `value` until somebody writes; of the lines `marked`, until they write on.
    """
    shown = {
        "label": label,
        "value": text(key, value),
        "most": most,
        "placeholder": placeholder,
        "marked": list(marked),
    }
    _FIELD(
        key=key,
        data=shown,
        default={"value": value},
        on_value_change=lambda: None,  # without one Streamlit takes no default
    )


def text(key: str, otherwise: str = "") -> str:
    """What is written in the field of that key, as far as its form was sent."""
    written: str = st.session_state.get(key, {}).get("value", otherwise)
    return written


def lines_in(hint: str) -> list[int]:
    """The lines that a hint is about: "Line 8: ..."."""
    return [int(each) for each in re.findall(r"\bLine (\d+)", hint)]
