"""Which finished run a page is about: the one in the address, or another."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.ui import format, runs
from core.ui.runs import Run


def choose() -> tuple[Run | None, DeltaGenerator]:
    """The chosen run, the same on all pages that ask, and the row of its selector.

    None where no run has finished.
    """
    state = st.session_state
    wanted = st.query_params.get("run", state.get("evaluated_run", state.get("run_id")))
    finished = {each.id: each for each in runs.finished()}
    if wanted and wanted not in finished:
        why = runs.why_not(wanted)
        st.warning(f"{why} Choose one that has finished.", icon=":material/info:")
    row = st.container(horizontal=True, vertical_alignment="bottom")
    if not finished:
        st.query_params.pop("run", None)
        return None, row
    names = {
        run_id: format.describe(run_id, each.result)
        for run_id, each in finished.items()
        if each.result
    }
    ids = list(finished)
    chosen = row.selectbox(
        "Run",
        ids,
        index=ids.index(wanted) if wanted in finished else 0,
        format_func=names.__getitem__,
        help="All finished runs of this server: yours first, the newest first.",
    )
    state.evaluated_run = st.query_params["run"] = chosen
    return finished[chosen], row


def nothing_yet(what: str) -> None:
    """In the place of what needs a finished run."""
    st.markdown(f"{what} No run on images has finished on this server yet.")
    st.page_link("pages/3_Train.py", label="Train one", icon=":material/play_arrow:")
