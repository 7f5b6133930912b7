"""What a visitor does with their runs: rename, hide, delete, take along."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import streamlit as st

from core.errors import ExplainedError
from core.store import export
from core.store.results import RunSummary
from core.ui import downloads, format, server
from core.ui.links import link
from core.ui.my_runs import listing, table


def row(chosen: Sequence[RunSummary], everything: Sequence[RunSummary]) -> None:
    """The buttons for the selected runs."""
    with st.container(horizontal=True, vertical_alignment="center"):
        if not chosen:
            st.markdown("Select runs to compare them.", width="content")
        one = chosen[0] if len(chosen) == 1 else None
        if one and st.button("Rename", icon=":material/edit:", key="rename_run"):
            _rename(one)
        if chosen:
            hidden = all(each.hidden for each in chosen)
            st.button(
                "Show again" if hidden else "Hide",
                icon=f":material/visibility{'' if hidden else '_off'}:",
                key="show_runs" if hidden else "hide_runs",
                on_click=_hide,
                args=([each.id for each in chosen], not hidden),
            )
        if chosen and st.button("Delete", icon=":material/delete:", key="delete_runs"):
            _delete(chosen)
        with st.popover("Export", icon=":material/download:"):
            if chosen:
                _files(
                    f"The {format.counted(len(chosen), 'selected run')}", chosen, "some"
                )
            _files(f"All {len(everything):,}", everything, "all")
        if one:
            st.markdown("Open in", width="content")
            for to in table.where(one):
                query = {"run": one.id}
                link(to, query_params=query)


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
    key = f"name_{run.id}"
    with st.form("rename", border=False):
        st.text_input("Name", run.name, key=key, max_chars=80, placeholder="None")
        if st.form_submit_button(
            "Save",
            type="primary",
            key="save_name",
            on_click=_save_name,
            args=(run.id, key),
        ):
            st.rerun()


@st.dialog("Delete for good?")
def _delete(runs: Sequence[RunSummary]) -> None:
    several = len(runs) > 1
    st.markdown(
        f"{format.counted(len(runs), 'run')} with {'their' if several else 'its'} "
        f"curve{'s' * several} and checkpoint{'s' * several}. Links to "
        f"{'them' if several else 'it'} stop working, and this can't be undone."
    )
    if any(each.status in listing.GOING_ON for each in runs):
        st.markdown("Runs that are still going are cancelled.")
    ids = [each.id for each in runs]
    with st.container(horizontal=True):
        sure = st.button(
            "Delete",
            type="primary",
            key="delete_for_good",
            on_click=_erase,
            args=(ids,),
        )
        if sure or st.button("Keep", key="keep_runs"):
            st.rerun()


# What the buttons do, before the page is drawn again


@contextmanager
def _noticed(what: str) -> Iterator[None]:
    """An ExplainedError in it is told at the top of the page, after `what`."""
    try:
        yield
    except ExplainedError as error:
        st.session_state.runs_notice = f"{what} {error}"


def _save_name(run_id: str, key: str) -> None:
    with _noticed("The run was not renamed."):
        name = st.session_state[key]
        server.store().runs.rename(run_id, server.visitor(), name)


def _hide(ids: list[str], hidden: bool) -> None:
    with _noticed("Nothing was changed."):
        server.store().runs.hide(ids, server.visitor(), hidden)
        if hidden:
            _forget(ids)


def _erase(ids: list[str]) -> None:
    with _noticed("Nothing was deleted."):
        engine, who = server.engine(), server.visitor()
        engine.forget(who, ids)
        server.store().runs.delete(ids, who)
        engine.forget(who, ids)  # what somebody has looked at meanwhile
        _forget(ids)


def _forget(ids: Sequence[str]) -> None:
    """These are selected no more."""
    gone = set(ids)
    table.choose([each for each in st.session_state.runs_selected if each not in gone])
