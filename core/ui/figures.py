"""Figures on pages: drawings, tables, metrics, captions, and readings for charts."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import ceil
from statistics import median
from typing import Any

import pandas as pd
import streamlit as st

from core.measure import rounding
from core.measure.environment import Environment
from core.ui import format
from core.ui.server import engine

# Widths in a metric: of a character in the label, of a character in the value, and of
# everything beside the text.
LABEL_PIXELS, VALUE_PIXELS, AROUND_PIXELS = 6.5, 11, 35

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
    """Draw an SVG with the page's font, which images can't use. `alt` describes it."""
    _drawing(key=key, data={"svg": svg, "alt": alt}, width=width)


def table(
    rows: Iterable[Iterable[Any]],
    columns: Sequence[str] = (),
    alt: str = "",
    formats: Mapping[str, str] = {},
    right: Iterable[str] = (),
    **more: Any,
) -> None:
    """Draw a table that shows all rows, without scrolling.

    Rows are sequences, or dictionaries if `columns` is empty. `formats` maps a column
    to the format of its numbers. Texts in the columns `right` are aligned right.
    """
    cells: Any = map(tuple, rows) if columns else rows
    frame = pd.DataFrame(cells, columns=list(columns) or None)
    kind = st.column_config
    config: dict[str, Any] = dict.fromkeys(right, kind.TextColumn(alignment="right"))
    config |= {name: kind.NumberColumn(format=form) for name, form in formats.items()}
    config |= more.pop("column_config", {})
    more = {"height": "content", "column_config": config, "placeholder": "–"} | more
    st.dataframe(frame, hide_index=True, alt=alt, **more)


def metrics(figures: Mapping[str, str], notes: Mapping[str, str] = {}) -> None:
    """Draw {label: figure} side by side. `notes` has tooltips for some labels."""
    labels = LABEL_PIXELS * max(map(len, figures))
    widest = max(labels, VALUE_PIXELS * max(map(len, figures.values())))
    with st.grid(columns=len(figures), min_column_width=ceil(widest + AROUND_PIXELS)):
        for label, value in figures.items():
            st.metric(label, value, border=True, help=notes.get(label))


def caption(text: str, result: Any) -> None:
    """Draw `text`, then the machine and the day of a result's measurement.

    The machine is left out if the result is from this machine.
    """
    environments = getattr(result, "environments", None) or [result.environment]
    if isinstance(environments, dict):
        environments = environments.values()
    place, machine = elsewhere(*environments), engine().machine()
    if machine and hasattr(result, "candidates"):
        # A race names each candidate's number of threads, so another number than this
        # machine's doesn't mean another machine.
        threads = machine.devices[0].threads
        alike = (e and replace(e, threads=threads) for e in environments)
        place = elsewhere(*alike) and place
    # With non-breaking hyphens, a date stays on one line of a phone.
    day = getattr(result, "date", "")[:10].replace("-", "\u2011")
    st.caption(" ".join(filter(None, (text, place, day and f"{day}."))))


def elsewhere(*environments: Environment | None) -> str:
    """Where something was measured, as a sentence; "" if it was on this machine."""
    machine = engine().machine()
    here = set(map(format.provenance, machine.devices)) if machine else set()
    places = dict.fromkeys(
        format.provenance(environment)
        for environment in environments
        # The simulated accelerator is left out, since nothing is measured on it.
        if environment and not environment.is_simulated
    )
    return "" if places.keys() <= here else f"Measured on {'; '.join(places)}."


def bullets(lines: Iterable[str]) -> None:
    st.markdown("\n".join(f"- {line}" for line in lines))


def readings(
    readings: Sequence[Any],
    *names: str,
    ends: Callable[[Sequence[float]], tuple[float, float]] = format.middle_half,
    **unit: float,
) -> pd.DataFrame:
    """Return a row per reading: its fields `names`, then median, low, high, and time.

    `unit`, such as microseconds=1e6, names the median's column, and says how many of
    the unit a second has. `ends` computes low and high from the reading's seconds. Time
    is the median as text, such as "3.41 ms".
    """
    ((column, scale),) = unit.items()
    rows = []
    for reading in readings:
        fields = [getattr(reading, name) for name in names]
        middle, seconds = median(reading.seconds), ends(reading.seconds)
        values = (value * scale for value in (middle, *seconds))
        rows.append((*fields, *values, rounding.precise(middle)))
    return pd.DataFrame(rows, columns=[*names, column, "low", "high", "time"])
