"""Figures on pages: drawings, tables, metrics, captions, and readings for charts."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import ceil
from statistics import median
from typing import Any

import pandas as pd
import streamlit as st

from core.measure.environment import Environment
from core.ui import format
from core.ui.charts import faded
from core.ui.server import engine

# How wide the characters of a metric's label and value are, and the space around them.
LABEL_PIXELS, VALUE_PIXELS, AROUND_PIXELS = 6.5, 11, 35
Ends = Callable[[Sequence[float]], tuple[float, float]]


_drawing = st.components.v2.component(
    "drawing",
    html='<div class="drawing" role="img"></div>',
    css="svg { display: block; width: 100%; height: auto; }",
    js="""export default ({ data, parentElement }) => {
  const drawing = parentElement.querySelector(".drawing")
  drawing.ariaLabel = data.alt
  if (drawing.drawn !== data.svg) drawing.innerHTML = drawing.drawn = data.svg
}""",
)


def drawing(svg: str, alt: str, key: str, width: Any = "stretch") -> None:
    """Draw an SVG in the page's font, which an image can't use; `alt` describes it."""
    _drawing(key=key, data={"svg": svg, "alt": alt}, width=width)


def table(
    rows: Iterable[Iterable[Any]],
    columns: Sequence[str] = (),
    alt: str = "",
    formats: Mapping[str, str] = {},
    right: Iterable[str] = (),
    **more: Any,
) -> None:
    """Draw a table as high as its rows.

    The rows are dictionaries if there are no `columns`.

    `formats` has the formats of numbers, by column. Texts in the columns `right` are
    aligned right.
    """
    cells: Any = map(tuple, rows) if columns else rows
    frame = pd.DataFrame(cells, columns=list(columns) or None)
    kind = st.column_config
    config: dict[str, Any] = dict.fromkeys(right, kind.TextColumn(alignment="right"))
    config |= {name: kind.NumberColumn(format=form) for name, form in formats.items()}
    config |= more.pop("column_config", {})
    more = {"height": "content", "column_config": config} | more
    st.dataframe(frame, hide_index=True, alt=alt, **more)


def metrics(figures: Mapping[str, str], notes: Mapping[str, str] = {}) -> None:
    """Draw figures side by side or in pairs; `notes` explain some of them."""
    labels = LABEL_PIXELS * max(map(len, figures))
    widest = max(labels, VALUE_PIXELS * max(map(len, figures.values())))
    with st.grid(columns=len(figures), min_column_width=ceil(widest + AROUND_PIXELS)):
        for label, value in figures.items():
            st.metric(label, value, border=True, help=notes.get(label))


def caption(text: str, result: Any) -> None:
    """Draw how and when a result was measured, and where if not on this machine."""
    where = getattr(result, "environments", None) or [result.environment]
    where = where.values() if isinstance(where, dict) else where
    told, machine = elsewhere(*where), engine().machine()
    if machine and hasattr(result, "candidates"):
        # In a race, each candidate's name already tells its number of threads.
        threads = machine.devices[0].threads
        alike = (each and replace(each, threads=threads) for each in where)
        told = elsewhere(*alike) and told
    day = f"{result.date[:10]}." if hasattr(result, "date") else ""
    st.caption(" ".join(filter(None, (text, told, day))))


def elsewhere(*environments: Environment | None) -> str:
    """A sentence on where something was measured; "" if it was on this machine."""
    machine = engine().machine()
    here = {format.provenance(each) for each in machine.devices} if machine else set()
    known = dict.fromkeys(
        format.provenance(each)
        for each in environments
        if each and not each.is_simulated  # nothing is measured in a simulation
    )
    return "" if known.keys() <= here else f"Measured on {'; '.join(known)}."


@contextmanager
def empty_axes() -> Iterator[None]:
    """Draw the block's charts in pale colors, as empty axes for a later measurement."""
    st.markdown(":gray[Your measurement will appear here.]")
    with faded():
        yield


def bullets(lines: Iterable[str]) -> None:
    st.markdown("\n".join(f"- {line}" for line in lines))


def readings(
    found: Sequence[Any],
    *names: str,
    ends: Ends = format.middle_half,
    **unit: float,
) -> pd.DataFrame:
    """A row for each reading: its fields `names`, its median, low, high, and time.

    `unit`, such as microseconds=1e6, names the median's column and is the factor for
    the median, low, and high. Low and high are the `ends` of the spread. Time is the
    median as text, such as "3.41 ms".
    """
    ((column, scale),) = unit.items()
    rows = []
    for each in found:
        fields = [getattr(each, name) for name in names]
        values = (median(each.seconds), *ends(each.seconds))
        row = (*fields, *(value * scale for value in values))
        rows.append((*row, format.precise(values[0])))
    return pd.DataFrame(rows, columns=[*names, column, "low", "high", "time"])
