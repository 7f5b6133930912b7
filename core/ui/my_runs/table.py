"""The table of runs: what is in it, and which of its rows are selected."""

import zlib
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pandas as pd
import streamlit as st

from core.errors import quoted
from core.store.results import RunSummary
from core.ui import controls, format
from core.ui.charts import base
from core.ui.charts.train import swatch
from core.ui.course import Lesson, page
from core.ui.my_runs import listing
from core.ui.runs import number

ROWS = 5  # that are seen without scrolling
ROW_HEIGHT = 35  # pixels, as st.dataframe draws them
AT_FIRST = 3  # runs that are selected when the page opens
IN_ADDRESS = 8  # selected runs that the address remembers
ALL = ""
COLUMN = st.column_config


def looks(found: Sequence[RunSummary]) -> dict[str, int]:
    """The number of each run, which its color is for life."""
    return {each.id: number(each.id, each.visitor or "") for each in found}


def filters(runs: list[RunSummary]) -> list[RunSummary]:
    """The controls, for as many as there is a choice, and the runs that they let by."""
    shown = runs
    with st.container(horizontal=True, vertical_alignment="center"):
        text = st.text_input(
            "Search",
            key="runs_search",
            placeholder="Name, setting, status",
            icon=":material/search:",
            width="stretch",
            label_visibility="collapsed",
            persist_state="session",
        )
        for field, title, every in (
            ("task", "Task", "All tasks"),
            ("model", "Model", "All models"),
            ("device_name", "Device", "All devices"),
        ):
            there = sorted({value for each in runs if (value := getattr(each, field))})
            key = f"runs_{field}"
            if st.session_state.get(key, ALL) not in (ALL, *there):
                del st.session_state[key]  # the last of those is deleted
            if len(there) > 1:
                chosen = controls.choice(
                    title,
                    key,
                    [ALL, *there],
                    format_func=lambda value, every=every: (
                        format.NAMES.get(value, value) if value else every
                    ),
                    label_visibility="collapsed",
                    persist_state="session",
                )
                shown = [r for r in shown if chosen in (ALL, getattr(r, field))]
        if any(each.hidden for each in runs) and not st.toggle(
            "Show hidden", key="runs_hidden", persist_state="session"
        ):
            shown = [each for each in shown if not each.hidden]
    return listing.search(shown, text) if text else shown


def nothing() -> None:
    """In the place of the table, where the controls let no run by."""
    text = st.session_state.get("runs_search", "").strip()
    with st.container(horizontal=True, vertical_alignment="center"):
        matches = f"No run matches {quoted(text)}." if text else "No run matches."
        st.markdown(matches, width="content")
        if text:
            st.button(
                "Clear the search",
                icon=":material/close:",
                key="clear_search",
                on_click=st.session_state.update,
                args=({"runs_search": ""},),
            )


def frame(runs: Sequence[RunSummary], numbers: dict[str, int]) -> pd.DataFrame:
    """A row a run, the fewest columns first that say what it is."""
    colors = base.palette()
    swatches = {n: swatch(colors, n) for n in range(len(colors.runs))}
    columns = {
        "swatch": [swatches[numbers[each.id] % len(swatches)] for each in runs],
        "run": [_said(each, numbers[each.id]) for each in runs],
        "accuracy": [each.accuracy and 100 * each.accuracy for each in runs],
        "r2": [each.r2 for each in runs],
        "seconds": [each.seconds for each in runs],
        "task": [format.NAMES.get(each.task or "", each.task) for each in runs],
        "model": [format.NAMES.get(each.model or "", each.model) for each in runs],
        "device": [each.device_name or listing.device(each) for each in runs],
        "when": [datetime.fromtimestamp(each.submitted, UTC) for each in runs],
        "open": [[_label(to) for to in where(each)] for each in runs],
    }
    found = pd.DataFrame(columns)
    for column in ("accuracy", "r2", "seconds"):
        found[column] = found[column].astype(float)
    empty = [c for c in ("accuracy", "r2") if found[c].isna().all()]
    same = [c for c in ("task", "model", "device") if found[c].nunique() < 2]
    return found.drop(columns=[*empty, *same])


def _said(run: RunSummary, number: int) -> str:
    """What a run is, and before it what is to be known of it."""
    notes = [run.status] if run.status != "finished" else []
    notes += ["hidden"] if run.hidden else []
    notes += [] if run.name else [f"Run {number}"]
    return listing.JOIN.join([*notes, listing.label(run)])


def where(run: RunSummary) -> list[Lesson]:
    """The pages that can show this run."""
    images = run.status == "finished" and run.accuracy is not None
    return [
        page(title) for title in ("Train", "Evaluate", "Checkpoints")[: 1 + 2 * images]
    ]


def _label(lesson: Lesson) -> str:
    return f"{lesson.icon} {lesson.title}"


def draw(runs: Sequence[RunSummary], numbers: dict[str, int]) -> list[RunSummary]:
    """The table of these runs; returns those of them that are selected."""
    state = st.session_state
    ids = [each.id for each in runs]
    chosen: list[str] = state.runs_selected
    # Selected are rows by their numbers: another list of runs is another table. So is
    # one whose selection was changed from elsewhere.
    listed = zlib.crc32(" ".join(ids).encode())
    height = ROW_HEIGHT * (1 + max(1, min(ROWS, len(runs)))) + 3
    event = st.dataframe(
        frame(runs, numbers),
        height=height,
        hide_index=True,
        placeholder="–",
        key=f"runs_{state.get('runs_version', 0)}_{listed}",
        on_select="rerun",
        selection_mode="multi-row",
        selection_default={
            "selection": {"rows": [ids.index(each) for each in chosen if each in ids]}
        },
        column_config=_columns(),
        alt="Your runs, the newest first; the selected ones are on the charts below",
    )
    _go_on(runs)
    rows = set(event["selection"]["rows"])
    there = set(ids)
    state.runs_selected = [each for each in chosen if each not in there] + [
        each for row, each in enumerate(ids) if row in rows
    ]
    return [each for row, each in enumerate(runs) if row in rows]


def _columns() -> dict[str, Any]:
    number: dict[str, Any] = {"alignment": "right"}
    return {
        "swatch": COLUMN.ImageColumn(" ", width=36),
        "accuracy": COLUMN.NumberColumn("Accuracy", format="%.2f%%", **number),
        "r2": COLUMN.NumberColumn("R²", format="%.3f", **number),
        "seconds": COLUMN.NumberColumn("Seconds", format="%.1f", **number),
        "run": COLUMN.TextColumn("Run", help="What differs from the default settings"),
        "task": COLUMN.TextColumn("Task"),
        "model": COLUMN.TextColumn("Model"),
        "device": COLUMN.TextColumn("Device"),
        "when": COLUMN.DatetimeColumn("When", format="distance"),
        "open": COLUMN.ButtonColumn("Open in", type="tertiary", key="open_run"),
    }


def _go_on(runs: Sequence[RunSummary]) -> None:
    """To the page that was asked for with a click in the last column."""
    if click := st.session_state.get("open_run"):
        run = runs[click["row"]]
        to = next(each for each in where(run) if _label(each) == click["label"])
        st.switch_page(to.file, query_params={"run": run.id})


# Which runs are selected, between two looks at the page


def restore(runs: Sequence[RunSummary]) -> str:
    """Select what the address asks for, else what was selected, else the newest.

    ?run= is a run that is to be seen beside those before it, ?runs= are several.
    Returns a sentence where the address names what can't be shown, else "".
    """
    state, query = st.session_state, st.query_params
    there = {each.id: each for each in runs}
    asked, several = query.pop("run", None), query.get("runs")
    if asked in there:
        ids = listing.beside(runs, there[asked], AT_FIRST)
    elif asked is not None:
        ids = [asked]
    elif several is not None and several != state.get("runs_address"):
        ids = list(dict.fromkeys(several.split(",")))[:IN_ADDRESS]
    else:
        if "runs_selected" not in state:
            state.runs_selected = listing.first_choice(runs, AT_FIRST)
        return ""
    found = [each for each in ids if each in there]
    choose(found or listing.first_choice(runs, AT_FIRST))
    missing = len(ids) - len(found)
    if not missing:
        return ""
    what = f"{format.counted(missing, 'run')} in this address"
    return f"{what} {'are' if missing > 1 else 'is'} not yours, or was deleted."


def remember() -> None:
    """Keep the selection in the address, for a reload."""
    state = st.session_state
    state.runs_address = ",".join(state.runs_selected[:IN_ADDRESS])
    if state.runs_address:
        st.query_params["runs"] = state.runs_address
    else:
        st.query_params.pop("runs", None)


def choose(ids: list[str]) -> None:
    """Select these runs, and no others."""
    state = st.session_state
    state.runs_selected = ids
    state.runs_version = state.get("runs_version", 0) + 1
