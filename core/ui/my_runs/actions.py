"""What a visitor does with their runs: rename, hide, delete, take along."""

from collections.abc import Sequence

import streamlit as st

from core.store import export
from core.store.results import RunSummary
from core.ui import downloads, format, server
from core.ui.course import page
from core.ui.my_runs import listing, table


def row(chosen: Sequence[RunSummary], everything: Sequence[RunSummary]) -> None:
    """The buttons for the selected runs."""
    with st.container(horizontal=True, vertical_alignment="center"):
        number = len(chosen)
        if not chosen:
            st.markdown("Tick runs to compare them.", width="content")
        one = chosen[0] if number == 1 else None
        if one and st.button("Rename", icon=":material/edit:", key="rename_run"):
            _rename(one)
        if chosen and all(each.hidden for each in chosen):
            if st.button("Show again", icon=":material/visibility:", key="show_runs"):
                _hide(chosen, False)
        elif chosen and st.button(
            "Hide", icon=":material/visibility_off:", key="hide_runs"
        ):
            _hide(chosen, True)
        if chosen and st.button("Delete", icon=":material/delete:", key="delete_runs"):
            _delete(chosen)
        with st.popover("Export", icon=":material/download:"):
            if chosen:
                _files(f"The {format.counted(number, 'selected run')}", chosen, "some")
            _files(f"All {len(everything):,}", everything, "all")
        for title in ("Train", "Evaluate", "Checkpoints") if one else ():
            if one and (
                title == "Train" or (one.accuracy and one.status == "finished")
            ):
                to = page(title)
                query = {"run": one.id}
                st.page_link(to.file, label=title, icon=to.icon, query_params=query)


def _files(what: str, runs: Sequence[RunSummary], key: str) -> None:
    st.markdown(f"**{what}**")
    store = server.store()
    with st.container(horizontal=True):
        downloads.button(
            "CSV",
            lambda: export.runs_csv(runs),
            "runs.csv",
            f"runs_csv_{key}",
            mime="text/csv",
        )
        downloads.button(
            "JSON, with curves",
            lambda: export.runs_json(store, runs),
            "runs.json",
            f"runs_json_{key}",
            mime="application/json",
        )


@st.dialog("Rename this run")
def _rename(run: RunSummary) -> None:
    with st.form("rename", border=False):
        name = st.text_input(
            "Name", run.name, key=f"name_{run.id}", max_chars=80, placeholder="None"
        )
        pressed = st.form_submit_button("Save", type="primary", key="save_name")
    if pressed:
        with server.explained("It was not renamed"):
            server.store().runs.rename(run.id, server.visitor(), name)
            st.rerun()


def _hide(runs: Sequence[RunSummary], hidden: bool) -> None:
    ids = [each.id for each in runs]
    with server.explained("They were not hidden" if hidden else "They stay hidden"):
        server.store().runs.hide(ids, server.visitor(), hidden)
        if hidden:
            forget(ids)
        st.rerun()


@st.dialog("Delete for good?")
def _delete(runs: Sequence[RunSummary]) -> None:
    several = len(runs) > 1
    st.markdown(
        f"{format.counted(len(runs), 'run')} with {'their' if several else 'its'} "
        f"curve{'s' * several} and checkpoint{'s' * several}. Links to "
        f"{'them' if several else 'it'} stop working, and there is no way back."
    )
    if any(each.status in listing.GOING_ON for each in runs):
        st.markdown("What is still going on is cancelled first.")
    with st.container(horizontal=True):
        if st.button("Delete", type="primary", key="delete_for_good"):
            ids = [each.id for each in runs]
            with server.explained("Nothing was deleted"):
                for each in runs:
                    if each.status in listing.GOING_ON:
                        server.engine().cancel(each.id)
                server.store().runs.delete(ids, server.visitor())
                forget(ids)
                st.rerun()
        if st.button("Keep", key="keep_runs"):
            st.rerun()


def forget(ids: Sequence[str]) -> None:
    """These are selected no more."""
    gone = set(ids)
    table.choose([each for each in st.session_state.runs_selected if each not in gone])
