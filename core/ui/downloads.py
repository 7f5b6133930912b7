"""Figures to take away, as CSV and as JSON."""

import json

import pandas as pd
import streamlit as st

from core.measure.rows import Row


def both(name: str, rows: list[Row]) -> None:
    """Two buttons; every row says where, when and how it was measured."""
    if not rows:
        return
    with st.container(horizontal=True):
        st.download_button(
            "CSV",
            pd.DataFrame(rows).to_csv(index=False),
            f"{name}.csv",
            "text/csv",
            icon=":material/download:",
            key=f"{name}_csv",
            on_click="ignore",
        )
        st.download_button(
            "JSON",
            json.dumps(rows, indent=1),
            f"{name}.json",
            "application/json",
            icon=":material/download:",
            key=f"{name}_json",
            on_click="ignore",
        )
