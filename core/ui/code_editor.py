"""A field for code, with a fixed-width font and a number beside each line.

Streamlit's text areas have the page's font, and no setting or theme changes that.
"""

import re
from collections.abc import Collection
from pathlib import Path

import streamlit as st

MOST_CHARACTERS = 200_001  # one more than the longest script that is checked

_FIELD = st.components.v2.component(
    "code_editor",
    html='<div class="code"><ol aria-hidden="true"></ol>'
    '<textarea rows="1" spellcheck="false" autocapitalize="off"></textarea></div>',
    css=Path(__file__).with_suffix(".css").read_text("utf-8"),
    js=Path(__file__).with_suffix(".js").read_text("utf-8"),
)


def draw(
    label: str,
    key: str,
    value: str = "",
    *,
    most: int = MOST_CHARACTERS,
    rows: int = 1,
    placeholder: str = "",
    marked: Collection[int] = (),
) -> None:
    """Draw the field in a form. Once the form is sent, text() has the content.

    Until somebody types, the field has the text `value`, and the lines with
    the numbers in `marked` are marked. `most` is the greatest number of
    characters, and `rows` the least number of lines that the field is high.
    """
    _FIELD(
        key=key,
        data={
            "key": key,
            "label": label,
            "value": text(key, value),
            "most": most,
            "rows": rows,
            "placeholder": placeholder,
            "marked": list(marked),
        },
        default={"value": value},
        # Streamlit refuses a `default` for a value that has no callback.
        on_value_change=lambda: None,
    )


def text(key: str, default: str = "") -> str:
    """What was last sent from the field with this key; before that, `default`.

    Cut after MOST_CHARACTERS.
    """
    content = st.session_state.get(key, {}).get("value", default)
    return str(content)[:MOST_CHARACTERS]  # a program can send anything


def lines_in(hint: str) -> list[int]:
    """The lines that a hint names: "Line 8: ...", "Change line 8", "after line 8"."""
    named = r"\b(?:Line|Change line|after line) (\d{1,6})"
    return [int(n) for n in re.findall(named, hint)]
