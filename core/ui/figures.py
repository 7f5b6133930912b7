"""Figures as the pages show them: tables, metrics, and what charts of readings need."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from typing import Any

import pandas as pd
import streamlit as st

from core.ui import format

Ends = Callable[[Sequence[float]], tuple[float, float]]


def table(
    rows: Iterable[Iterable[Any]],
    columns: Sequence[str] = (),
    alt: str = "",
    **more: Any,
) -> None:
    """A table that is as high as its rows need; `alt` says what it shows.

    Without `columns`, each row is a dictionary by them.
    """
    cells: Any = map(tuple, rows) if columns else rows
    frame = pd.DataFrame(cells, columns=list(columns) or None)
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


def caption(text: str, result: Any) -> None:
    """How the figures of a result were measured; then where, and when if it knows."""
    where = getattr(result, "environments", None) or [result.environment]
    known = dict.fromkeys(format.provenance(each) for each in where if each)
    day = f" {result.date[:10]}." if hasattr(result, "date") else ""
    st.caption(f"{text} {'; '.join(known)}.{day}")


def bullets(lines: Iterable[str]) -> None:
    """A list, a sentence or two a point."""
    st.markdown("\n".join(f"- {line}" for line in lines))


def readings(
    found: Sequence[Any],
    *names: str,
    ends: Ends = format.middle_half,
    **unit: float,
) -> pd.DataFrame:
    """A row for each: what it is, its median and the `ends` of its spread.

    The first columns are the fields of these names. `unit`, say microseconds=1e6, is
    the column of the median; low and high are in it too, and time is it in words.
    """
    ((column, scale),) = unit.items()
    rows = []
    for each in found:
        fields = [getattr(each, name) for name in names]
        values = (median(each.seconds), *ends(each.seconds))
        row = (*fields, *(value * scale for value in values))
        rows.append((*row, format.precise(values[0])))
    return pd.DataFrame(rows, columns=[*names, column, "low", "high", "time"])
