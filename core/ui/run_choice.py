"""Which finished run a page is about: the one in the address, or another."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.ui import controls, format, runs
from core.ui.course import page
from core.ui.links import link
from core.ui.runs import Run


def choose() -> tuple[Run | None, DeltaGenerator]:
    """The chosen run, the same on all pages that ask, and the row of its selector.

    None where no run has finished.
    """
    state = st.session_state
    finished = {each.id: each for each in runs.finished()}
    newest = next(iter(finished), None)
    chosen_before = newest in (None, state.get("newest_run"))  # else there is a new one
    before = state.get("evaluated_run") if chosen_before else None
    wanted = st.query_params.get("run", before or state.get("run_id"))
    shown = runs.run(wanted)
    if wanted and wanted not in finished:
        if shown is not None and shown.result and shown.config.has_images:
            finished[wanted] = runs.Finished.of(shown.job)  # an old one, by its link
        else:
            why = runs.why_not(wanted)
            st.warning(f"{why} Choose one that has finished.", icon=":material/info:")
    row = controls.row()
    if not finished:
        st.query_params.pop("run", None)
        return None, row
    ids = list(finished)
    called = {
        each.id: format.describe(each.name, each.config, each.accuracy)
        for each in finished.values()
    }
    chosen = row.selectbox(
        "Run",
        ids,
        index=ids.index(wanted) if wanted in finished else 0,
        format_func=called.__getitem__,
        help="Finished runs on this server: yours first, newest first.",
    )
    state.evaluated_run = st.query_params["run"] = chosen
    state.newest_run = newest
    found = shown if chosen == wanted else runs.run(chosen)
    if found is None:
        st.warning(runs.why_none(chosen), icon=":material/info:")
    return found, row


def nothing_yet() -> None:
    """Above what is shown in the place of what needs a finished run."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown("No image model has been trained on this server yet.")
        link(page("Train"), "Train one", icon=":material/play_arrow:")
