"""The list of a visitor's runs: its filters, its table, and the buttons under it."""

import zlib
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from time import time
from typing import Any

import pandas as pd
import streamlit as st

from core.registry import RUN
from core.runs import listing
from core.runs import loss_chart as charts
from core.store import export
from core.store.runs import LONGEST_NAME
from core.store.tables import RunSummary
from core.ui import controls, format, runs, server
from core.ui.charts import palette
from core.ui.course import Lesson, link, page
from to_device.errors import ExplainedError, quoted
from to_device.words import Words

ROWS = 5  # rows that show without scrolling
AT_FIRST = 3  # runs that are selected when the page opens
IN_ADDRESS = 8  # limit of the selected runs in the page's address
ALL = ""
COLUMN = st.column_config
words = Words(__file__)


def mine() -> list[RunSummary]:
    """All runs of this visitor, newest first; without a database, those in memory."""
    visitor = server.visitor()
    try:
        return server.store().runs.find(visitor, hidden=True, address=RUN)
    except ExplainedError as error:
        st.warning(
            f"{error} You see only the runs in memory, which last until the app stops.",
            icon=":material/database_off:",
        )
        jobs = server.engine().jobs(RUN, visitor)
        return [runs.summary(runs.view(job)) for job in reversed(jobs)]


def numbers(listed: Sequence[RunSummary]) -> dict[str, int]:
    """Number each owner's runs, keyed by id; a run's number sets its color."""
    return {run.id: runs.number(run.id, run.visitor or "") for run in listed}


def draw_empty() -> None:
    """Draw a button that leads to a first run, and the newest run on this server."""
    if server.visitor_of_cookie():  # the text names a field that needs cookies
        st.markdown(words("empty"))
    if st.button("Train a model", type="primary", icon=":material/play_arrow:"):
        st.switch_page(page("Train").file)
    newest = runs.stored_runs(runs.others(), limit=1, status="finished")
    if not newest or (run := runs.run(newest[0].id)) is None:
        return
    summary = newest[0]
    name = format.NAMES.get(summary.model or "", summary.model)
    name = f"{name}, {listing.label(summary)}"
    over = "epoch" if run.is_simulated else "seconds"
    who = "somebody in this class" if summary.visitor else "the server itself"
    took = f" in {format.duration(summary.seconds)}" if summary.seconds else ""
    st.markdown(
        f"**The newest run on this server**: {listing.figure(summary)}{took}, by "
        f"{who}, {format.ago(time() - summary.submitted)} on {summary.device_name}."
    )
    st.vega_lite_chart(
        runs.loss_table([run], [name]),
        charts.losses(((name, run.number),), over, height=charts.HEIGHT, alike=True),
        alt="Training loss of the newest run on this server",
    )


def filters(listed: list[RunSummary]) -> list[RunSummary]:
    """Draw the filters that offer a choice; returns the runs that pass them all."""
    matching = listed
    with st.container(horizontal=True, vertical_alignment="center"):
        text = st.text_input(
            "Search",
            key="runs_search",
            placeholder="Name, setting, status",
            max_chars=LONGEST_NAME,
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
            values = {getattr(run, field) for run in listed} - {None, ""}
            key = f"runs_{field}"
            if st.session_state.get(key, ALL) not in (ALL, *values):
                del st.session_state[key]  # no run with the chosen value is left
            if len(values) > 1:
                names = {ALL: every} | {v: format.NAMES.get(v, v) for v in values}
                value = controls.choice(
                    title,
                    key,
                    [ALL, *sorted(values)],
                    format_func=names.__getitem__,
                    label_visibility="collapsed",
                )
                matching = [r for r in matching if value in (ALL, getattr(r, field))]
        if any(run.hidden for run in listed) and not st.toggle(
            "Show hidden", key="runs_hidden", persist_state="session"
        ):
            matching = [run for run in matching if not run.hidden]
    return listing.search(matching, text) if text else matching


def draw_no_match() -> None:
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


def draw(listed: Sequence[RunSummary]) -> list[RunSummary]:
    """Draw the table of these runs; returns the selected runs."""
    state = st.session_state
    ids = [run.id for run in listed]
    selected_ids: list[str] = state.runs_selected
    selected = [ids.index(run_id) for run_id in selected_ids if run_id in ids]
    # st.dataframe keeps the selected row numbers under the table's key. So the key must
    # change with the list (checksum), and if code changes the selection (runs_version).
    checksum = zlib.crc32(" ".join(ids).encode())
    right: dict[str, Any] = {"alignment": "right"}
    columns: dict[str, Any] = {
        "swatch": COLUMN.ImageColumn("Color", width=56),
        "accuracy": COLUMN.NumberColumn("Accuracy", format="%.2f%%", **right),
        "r2": COLUMN.NumberColumn("R²", format="%.3f", **right),
        "seconds": COLUMN.NumberColumn("Seconds", format="%.1f", **right),
        "run": COLUMN.TextColumn("Run", help="What differs from the usual setting"),
        "task": COLUMN.TextColumn("Task"),
        "model": COLUMN.TextColumn("Model"),
        "device": COLUMN.TextColumn("Device"),
        "when": COLUMN.DatetimeColumn("When", format="distance"),
        "open": COLUMN.ButtonColumn("Open in", type="tertiary", key="open_run"),
    }
    event = st.dataframe(
        _table(listed),
        height=charts.ROW_HEIGHT * (1 + max(1, min(ROWS, len(listed)))) + 3,
        hide_index=True,
        placeholder="–",
        key=f"runs_{state.get('runs_version', 0)}_{checksum}",
        on_select="rerun",
        selection_mode="multi-row",
        selection_default={"selection": {"rows": selected}},
        column_config=columns,
        alt="Your runs, newest first. The charts show the selected runs.",
    )
    if click := state.get("open_run"):
        run = listed[click["row"]]
        to = next(to for to in _pages(run) if _button(to) == click["label"])
        st.switch_page(to.file, query_params={"run": run.id})
    rows = [row for row in sorted(event["selection"]["rows"]) if row < len(ids)]
    others = [run_id for run_id in selected_ids if run_id not in ids]
    state.runs_selected = others + [ids[row] for row in rows]
    return [listed[row] for row in rows]


def _table(listed: Sequence[RunSummary]) -> pd.DataFrame:
    """A row per run, without columns that are empty or the same in all rows."""
    colors, number = palette(), numbers(listed)
    swatches = [charts.swatch(colors, n) for n in range(len(colors.runs))]

    def name(run: RunSummary) -> str:
        status = format.NAMES.get(run.status, run.status)
        notes = [status] if run.status != "finished" else []
        notes += ["hidden"] if run.hidden else []
        notes += [] if run.name else [f"Run {number[run.id]}"]
        return listing.joined(*notes, listing.label(run))

    columns = {
        "swatch": [swatches[number[run.id] % len(swatches)] for run in listed],
        "run": [name(run) for run in listed],
        "accuracy": [run.accuracy and 100 * run.accuracy for run in listed],
        "r2": [run.r2 for run in listed],
        "seconds": [run.seconds for run in listed],
        "task": [format.NAMES.get(run.task or "", run.task) for run in listed],
        "model": [format.NAMES.get(run.model or "", run.model) for run in listed],
        "device": [run.device_name or listing.device(run) for run in listed],
        "when": [datetime.fromtimestamp(run.submitted, UTC) for run in listed],
        "open": [[_button(to) for to in _pages(run)] for run in listed],
    }
    table = pd.DataFrame(columns).astype(
        dict.fromkeys(("accuracy", "r2", "seconds"), float)
    )
    empty = [c for c in ("accuracy", "r2") if table[c].isna().all()]
    same = [c for c in ("task", "model", "device") if table[c].nunique() < 2]
    if any(run.is_simulated for run in listed) and "device" in same:
        same.remove("device")  # only this column says that the runs were simulated
    return table.drop(columns=[*empty, *same])


def _pages(run: RunSummary) -> list[Lesson]:
    images = run.status == "finished" and run.accuracy is not None
    titles = ("Train", "Evaluate", "Checkpoints") if images else ("Train",)
    return [page(title) for title in titles]


def _button(lesson: Lesson) -> str:
    return f"{lesson.icon} {lesson.title}"


# The selection: ids in the session's state, and in the address for a reload


def restore(listed: Sequence[RunSummary]) -> str:
    """Select the runs in the page's address, or the earlier selection, or the newest.

    Returns a sentence on runs in the address that can't be shown; "" if there are none.
    """
    state, query = st.session_state, st.query_params
    by_id = {run.id: run for run in listed}
    run_id, run_ids = query.pop("run", None), query.get("runs")
    if run_id in by_id:  # select earlier runs too, for a comparison
        ids = listing.beside(listed, by_id[run_id], AT_FIRST)
    elif run_id is not None:
        ids = [run_id]
    elif run_ids is not None and run_ids != state.get("runs_address"):
        ids = list(dict.fromkeys(run_ids.split(",")))[:IN_ADDRESS]
    else:
        if "runs_selected" not in state:
            state.runs_selected = listing.first_choice(listed, AT_FIRST)
        return ""
    listed_ids = [run_id for run_id in ids if run_id in by_id]
    choose(listed_ids or listing.first_choice(listed, AT_FIRST))
    missing = len(ids) - len(listed_ids)
    if not missing:
        return ""
    subject = f"{format.counted(missing, 'run')} in this address"
    ending = "are not yours or were" if missing > 1 else "is not yours or was"
    return f"{subject} {ending} deleted."


def remember() -> None:
    """Write the selection to the page's address, so that it survives a reload."""
    state = st.session_state
    state.runs_address = ",".join(state.runs_selected[:IN_ADDRESS])
    if state.runs_address:
        st.query_params["runs"] = state.runs_address
    else:
        st.query_params.pop("runs", None)


def choose(ids: list[str]) -> None:
    state = st.session_state
    state.runs_selected = ids
    state.runs_version = state.get("runs_version", 0) + 1


def draw_actions(selection: Sequence[RunSummary], listed: Sequence[RunSummary]) -> None:
    """Draw buttons to rename, hide, delete, export and open the selected runs."""
    with st.container(horizontal=True, vertical_alignment="center"):
        if not selection:
            st.markdown("Select runs to compare them.", width="content")
        run = selection[0] if len(selection) == 1 else None
        if run and st.button("Rename", icon=":material/edit:", key="rename_run"):
            _rename(run)
        if selection:
            hidden = all(run.hidden for run in selection)
            st.button(
                "Show again" if hidden else "Hide",
                icon=f":material/visibility{'' if hidden else '_off'}:",
                key="show_runs" if hidden else "hide_runs",
                on_click=_hide,
                args=([run.id for run in selection], not hidden),
            )
            if st.button("Delete", icon=":material/delete:", key="delete_runs"):
                _delete(selection)
        with st.popover("Export", icon=":material/download:"):
            if selection:
                count = format.counted(len(selection), "selected run")
                _files(f"The {count}", selection, "some")
            _files(f"All {len(listed):,}", listed, "all")
        if run:
            st.markdown("Open in", width="content")
            for to in _pages(run):
                link(to, query_params={"run": run.id})


def _files(title: str, selection: Sequence[RunSummary], key: str) -> None:
    st.markdown(f"**{title}**")
    csv = partial(export.runs_csv, selection)
    json = partial(export.runs_json, server.store(), selection)
    with st.container(horizontal=True):
        controls.download("CSV", csv, "runs.csv", f"runs_csv_{key}")
        controls.download("JSON, with curves", json, "runs.json", f"runs_json_{key}")


@st.dialog("Rename this run")
def _rename(run: RunSummary) -> None:
    key = f"name_{run.id}"

    def save() -> None:
        with server.noticed("The run was not renamed."):
            name = st.session_state[key]
            server.store().runs.rename(run.id, server.visitor(), name)

    with st.form("rename", border=False):
        st.text_input(
            "Name", run.name, key=key, max_chars=LONGEST_NAME, placeholder="None"
        )
        if st.form_submit_button(
            "Save", type="primary", key="save_name", on_click=save
        ):
            st.rerun()


@st.dialog("Delete for good?")
def _delete(selection: Sequence[RunSummary]) -> None:
    ids = [run.id for run in selection]

    def erase() -> None:
        with server.noticed("Nothing was deleted."):
            engine, visitor = server.engine(), server.visitor()
            engine.forget(visitor, ids)
            server.store().runs.delete(ids, visitor)
            # Again, since a page may have loaded the runs before they were deleted.
            engine.forget(visitor, ids)
            _unselect(ids)

    count = format.counted(len(ids), "run")
    several = (
        len(ids) > 1
        and f"{count} will be deleted, with their curves and checkpoints. "
        "Links to the runs will stop working, and you can't undo "
        "this."
    )
    st.markdown(
        several
        or f"{count} will be deleted, with its curve and checkpoint. "
        "Links to the run will stop working, and you can't undo this."
    )
    if any(run.status in listing.GOING_ON for run in selection):
        st.markdown("Runs that are still in progress will be canceled.")
    with st.container(horizontal=True):
        sure = st.button(
            "Delete", type="primary", key="delete_for_good", on_click=erase
        )
        if sure or st.button("Keep", key="keep_runs"):
            st.rerun()


def _hide(ids: list[str], hidden: bool) -> None:
    with server.noticed("Nothing was changed."):
        server.store().runs.hide(ids, server.visitor(), hidden)
        if hidden:
            _unselect(ids)


def _unselect(ids: list[str]) -> None:
    choose([run_id for run_id in st.session_state.runs_selected if run_id not in ids])
