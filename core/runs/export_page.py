"""A run to take home: the downloads, for every page that shows a finished run."""

import streamlit as st

from core.results import RunResult
from core.runs import export
from core.ui import downloads as files
from core.ui.runs import Run
from core.words import Words

FILES = (  # label, text, ending, type, icon
    ("Script", export.script, "py", "text/x-python", "code"),
    ("Notebook", export.notebook, "ipynb", "application/x-ipynb+json", "menu_book"),
)
words = Words(__file__)


def downloads(run: Run) -> None:
    """Script, notebook and command line of a finished run."""
    result = run.result
    assert result is not None
    accuracy, task = result.test_accuracy, result.config.task
    quality = f"R² of {result.r2:.4f}" if accuracy is None else f"{accuracy:.2%}"
    needs = words.table("export.needs")[task]
    st.markdown(words("export.text", quality=quality, needs=needs))
    with st.container(horizontal=True):
        for label, write, ending, kind, icon in FILES:
            files.button(
                f"{label} (.{ending})",
                write(result),
                f"{file_name(run)}.{ending}",
                f"download_{label.lower()}",
                mime=kind,
                icon=f":material/{icon}:",
            )
        if task == "sprites":
            file, key = export.SPRITES, "download_drawing"
            more = {"mime": "text/x-python", "icon": ":material/draw:"}
            files.button(file.name, file.read_text("utf-8"), file.name, key, **more)
    st.markdown(words("export.command"))
    st.code(export.command(result.config), language="bash", wrap_lines=True)


def preview(result: RunResult) -> None:
    """The part of the script that trains."""
    st.code(export.heart(result), line_numbers=True)


def file_name(run: Run) -> str:
    """The name of this run's files, without an ending."""
    return f"{run.config.task}-{run.config.model}-{run.id[:6]}"
