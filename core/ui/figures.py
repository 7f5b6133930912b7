"""Figures as the pages show them: tables, metrics, and what charts of readings need."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

import pandas as pd
import streamlit as st

from core.ui import format


def table(
    rows: Iterable[Sequence[Any]], columns: Sequence[str], alt: str, **more: Any
) -> None:
    """A table that is as high as its rows need; `alt` says what it shows."""
    frame = pd.DataFrame(list(rows), columns=list(columns))
    st.dataframe(frame, hide_index=True, alt=alt, **{"height": "content"} | more)


def metrics(
    figures: Mapping[str, str],
    widths: int | Sequence[int],
    notes: Mapping[str, str] | None = None,
) -> None:
    """Figures side by side, each so many pixels wide; `notes` explain some of them."""
    if isinstance(widths, int):
        widths = [widths] * len(figures)
    with st.container(horizontal=True):
        for (label, value), width in zip(figures.items(), widths, strict=True):
            note = (notes or {}).get(label)
            st.metric(label, value, border=True, width=width, help=note)


def readings(seconds: Sequence[float], unit: float) -> tuple[float, float, float, str]:
    """Median, ends of the middle half, in units of so many a second; and in words."""
    low, high = format.middle_half(seconds)
    typical = median(seconds)
    return typical * unit, low * unit, high * unit, format.precise(typical)
