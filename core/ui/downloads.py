"""Files to take away."""

import json
from mimetypes import guess_type
from typing import Any

import pandas as pd
import streamlit as st

from core.measure.rows import Row


def button(label: str, data: Any, name: str, key: str, **more: Any) -> None:
    """A button that hands out a file called `name`, and leaves the page as it is."""
    st.download_button(
        label,
        data,
        name,
        key=key,
        on_click="ignore",
        **{"icon": ":material/download:", "mime": guess_type(name)[0]} | more,
    )


def both(name: str, rows: list[Row]) -> None:
    """CSV and JSON; every row says where, when and how it was measured."""
    if not rows:
        return
    table = pd.DataFrame(rows).to_csv(index=False)
    text = json.dumps(rows, indent=1)
    with st.container(horizontal=True):
        button("CSV", table, f"{name}.csv", f"{name}_csv")
        button("JSON", text, f"{name}.json", f"{name}_json")
