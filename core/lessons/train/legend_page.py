"""The table of runs below the Train page's loss chart, which is the chart's legend."""

from collections.abc import Sequence
from math import ceil

import pyarrow as pa
import streamlit as st

from core.runs import comparison
from core.runs import loss_chart as charts
from core.ui import format
from core.ui.charts import palette
from core.ui.runs import Run, differences

# A text's width that fits beside the other columns at 1280 pixels, and how many of its
# characters are in a line. A row that is higher than a line wraps its texts.
DIFFERS, LINE = 255, 36
LINE_HEIGHT = 20  # pixels
COLUMN = st.column_config


def draw(runs: Sequence[Run]) -> None:
    """Draw a table of the runs. The chart shows the runs whose boxes are ticked."""
    shown = table(runs)
    seconds, quality, differs = shown.column_names[2:]
    st.dataframe(
        shown,
        height="content",
        row_height=_row_height(shown[differs].to_pylist()),
        hide_index=True,
        placeholder="–",
        key=_key(runs),
        on_select="rerun",
        selection_mode="multi-row",
        selection_default={"selection": {"rows": list(range(len(runs)))}},
        column_config={
            "Color": COLUMN.ImageColumn("Color", width=56),
            "Run": COLUMN.TextColumn("Run", width=60),
            seconds: COLUMN.TextColumn(seconds, alignment="right", width=112),
            quality: COLUMN.TextColumn(quality, alignment="right", width=84),
            # Without a width, a column is as wide as its longest text, in one line.
            differs: COLUMN.TextColumn(differs, width=DIFFERS),
        },
        alt="The runs on the chart, with their colors, times, quality, and differences",
    )


def _row_height(texts: Sequence[str]) -> int:
    """How high rows are, in pixels, so that each of the texts is whole."""
    further = ceil(max(map(len, texts)) / LINE) - 1
    return charts.ROW_HEIGHT + max(0, further) * LINE_HEIGHT


def _key(runs: Sequence[Run]) -> str:
    """A key that changes with the runs, so that a new run ticks all boxes again."""
    return "_".join(("loss_legend", *(run.id for run in runs)))


def ticked(runs: Sequence[Run]) -> list[Run]:
    """The runs whose boxes are ticked. At first, all boxes are ticked."""
    state = st.session_state.get(_key(runs))
    rows = range(len(runs)) if state is None else state["selection"]["rows"]
    return [run for row, run in enumerate(runs) if row in rows]


def _unfinished(run: Run) -> str:
    """How a run ended that has no result, such as "canceled"; else ""."""
    status, has_stopped = run.job.status, run.job.ended and run.result is None
    return format.NAMES.get(status, status) if has_stopped else ""


def table(runs: Sequence[Run]) -> pa.Table:
    """A row per run. Long text comes last, since a phone shows the first columns."""
    goal = comparison.level([run for run in runs if run.result])

    def seconds(run: Run) -> str | None:
        if run.is_simulated:
            return None
        elapsed = comparison.seconds_to(goal, run.history)
        if goal is None:
            elapsed = run.result.seconds if run.result else None
        return None if elapsed is None else f"{elapsed:.1f}"

    def quality(run: Run) -> str | None:
        if not run.history:
            return None
        last = run.history[-1]
        accuracy = last.test_accuracy
        return f"{last.test_r2:.3f}" if accuracy is None else f"{accuracy:.2%}"

    colors, images = palette(), runs[-1].config.has_images
    texts = [
        ", ".join(filter(None, [text, _unfinished(run)]))
        for text, run in zip(differences(runs), runs, strict=True)
    ]
    height = _row_height(texts)
    time_title = "Total seconds" if goal is None else f"Seconds to {goal:.0%}"
    return pa.table(
        {
            "Color": [charts.swatch(colors, run.number, height) for run in runs],
            "Run": [run.name for run in runs],
            time_title: [seconds(run) for run in runs],
            "Accuracy" if images else "R²": [quality(run) for run in runs],
            "What differs": texts,
        }
    )
