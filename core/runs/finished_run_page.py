"""Choose the finished run that a page is about, and take its script home."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.runs import export
from core.store.tables import RunSummary
from core.ui import controls, format, runs
from core.ui.course import link, page
from core.ui.runs import Run
from core.ui.server import visitor
from to_device.words import Words

FILES = (  # the label, the function that writes the text, the ending, MIME type, icon
    ("Script", export.script, "py", "text/x-python", "code"),
    ("Notebook", export.notebook, "ipynb", "application/x-ipynb+json", "menu_book"),
)
words = Words(__file__)


def choose() -> tuple[Run | None, DeltaGenerator]:
    """Draw a choice of finished runs; returns the chosen run and the selector's row.

    All pages share the choice. The run is None if no run has finished, or if
    the chosen run can't be loaded.
    """
    state = st.session_state
    finished = {run.id: run for run in runs.finished()}
    newest = next(iter(finished), None)
    # If a run has finished since the last choice, that choice no longer counts.
    before = state.get("evaluated_run")
    if newest is not None and newest != state.get("newest_run"):
        before = None
    asked = st.query_params.get("run")
    run_id = asked or before or state.get("run_id")
    run = runs.run(run_id)
    if not asked and run_id not in finished and not (run and run.result):
        run_id = run = None  # nobody chose this run here: it was on Train
    if run_id and run_id not in finished:
        if run is not None and run.result and run.config.has_images:
            finished[run_id] = runs.summary(run)  # an old run, opened by its link
        elif not asked:  # a run on Train that didn't finish
            run_id, run = newest, runs.run(newest)
        else:
            if run is None:
                why = runs.why_none(run_id)
            elif run.config.has_images:
                status = format.NAMES.get(run.job.status, run.job.status)
                why = f"That run has not finished: its status is {status}."
            else:
                why = (
                    "That run fits a regression, but this page is for image "
                    "classifiers."
                )
            st.warning(f"{why} Choose a finished run.", icon=":material/info:")
    place = controls.row()
    if not finished:
        st.query_params.pop("run", None)
        return None, place
    ids = list(finished)
    labels = {run_id: _label(row) for run_id, row in finished.items()}
    choice = place.selectbox(
        "Run",
        ids,
        index=ids.index(run_id) if run_id in finished else 0,
        format_func=labels.__getitem__,
        width=620,
    )
    state.evaluated_run = st.query_params["run"] = choice
    state.newest_run = newest
    if choice != run_id:
        run = runs.run(choice)
    if run is None:
        st.warning(runs.why_none(choice), icon=":material/info:")
    return run, place


def _label(run: RunSummary) -> str:
    """A one-line label for a run. It begins with a name that no other run has."""
    owner = run.visitor or ""
    name = f"{'Somebody' if owner else 'The server'}'s run {run.id[:6]}"
    if owner == visitor():
        name = f"Run {runs.number(run.id, owner)}"
    about = f"{format.brief(run)}, lr {run.learning_rate:g}"
    if controls.on_phone():  # where a longer text would be cut
        about = format.subject(run)
    parts = [name, f"{about}: {run.accuracy:.2%}"]
    if run.is_simulated:
        parts.append("simulated")
    return " · ".join(filter(None, [*parts, format.steered(run)]))


def nothing_yet() -> None:
    """Say that no run has finished yet, with a link to Train."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown("You haven't trained an image model yet.")
        link(page("Train"), "Train a model", icon=":material/play_arrow:")


def take_home(run: Run) -> None:
    result = run.result
    assert result is not None
    accuracy, task = result.test_accuracy, result.config.task
    quality = f"R² of {result.r2:.4f}" if accuracy is None else f"{accuracy:.2%}"
    needs = words.table("export.needs")[task]
    st.markdown(words("export.text", quality=quality, needs=needs))
    with st.container(horizontal=True):
        for label, write, ending, kind, icon in FILES:
            controls.download(
                f"{label} (.{ending})",
                write(result),
                f"{file_name(run)}.{ending}",
                f"download_{label.lower()}",
                mime=kind,
                icon=f":material/{icon}:",
            )
        if task == "sprites":
            name, text = export.SPRITES.name, export.SPRITES.read_text("utf-8")
            icon = ":material/draw:"
            controls.download(name, text, name, "download_drawing", icon=icon)
    if result.changes:
        st.markdown(words("export.only_script"))
        return
    st.markdown("Or run the app's own code in the app's folder:")
    st.code(export.command(result.config), language="bash", wrap_lines=True)


def file_name(run: Run) -> str:
    """The name of this run's files, without an ending."""
    return f"{run.config.task}-{run.config.model}-{run.id[:6]}"
