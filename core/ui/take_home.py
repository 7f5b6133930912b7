"""A run to take home: the downloads, for every page that shows a finished run."""

import streamlit as st

from core.checkpoints import export
from core.results import RunResult
from core.ui import downloads as files
from core.ui.runs import Run

NEEDS = {  # beside torch
    "fashion-mnist": ", and torchvision if the data isn't downloaded yet.",
    "sprites": ", and `sprites.py` in the same folder, which draws the sprites.",
    "regression": "; the points are drawn by the script itself.",
}
FILES = (  # label, text, ending, type, icon
    ("Script", export.script, "py", "text/x-python", "code"),
    ("Notebook", export.notebook, "ipynb", "application/x-ipynb+json", "menu_book"),
)


def downloads(shown: Run) -> None:
    """Script, notebook and command line of a finished run."""
    result = shown.result
    assert result is not None
    reached = (
        f"{result.test_accuracy:.2%}"
        if result.config.has_images
        else f"R² of {result.r2:.4f}"
    )
    st.markdown(
        f"Run this without the app. The script trains with the same settings and ends "
        f"with the same **{reached}** on the same machine, with the same versions and "
        f"the same data. It needs torch{NEEDS[result.config.task]}"
    )
    with st.container(horizontal=True):
        for label, write, ending, kind, icon in FILES:
            files.button(
                f"{label} (.{ending})",
                write(result),
                f"{file_name(shown)}.{ending}",
                f"download_{label.lower()}",
                mime=kind,
                icon=f":material/{icon}:",
            )
        if result.config.task == "sprites":
            files.button(
                "sprites.py",
                export.SPRITES.read_text("utf-8"),
                export.SPRITES.name,
                "download_drawing",
                mime="text/x-python",
                icon=":material/draw:",
            )
    st.markdown("Or with this app's own code, in its folder:")
    st.code(export.command(result.config), language="bash", wrap_lines=True)


def preview(result: RunResult) -> None:
    """The part of the script that trains."""
    st.code(export.heart(result), line_numbers=True)


def file_name(shown: Run) -> str:
    """What files of this run are called, without an ending."""
    config = shown.config
    return f"{config.task}-{config.model}-{shown.id[:6]}"
