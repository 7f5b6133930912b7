"""A run to take home: the downloads, for every page that shows a finished run."""

import streamlit as st

from core.checkpoints import export
from core.results import RunResult
from core.ui.runs import Run


def downloads(shown: Run) -> None:
    """Script, notebook and command line of a finished run."""
    result = shown.result
    assert result is not None
    name = file_name(shown)
    reached = (
        f"{result.test_accuracy:.2%}"
        if result.config.has_images
        else f"R² of {result.r2:.4f}"
    )
    needs = {
        "fashion-mnist": ", and torchvision where the data is still to be downloaded.",
        "sprites": "; the sprites are drawn by the script itself.",
        "regression": "; the points are drawn by the script itself.",
    }
    st.markdown(
        f"This run without this app. The script trains with the same settings and ends "
        f"with the same **{reached}** on the same machine, with the same versions and "
        f"the same data. It needs torch{needs[result.config.task]}"
    )
    with st.container(horizontal=True):
        st.download_button(
            "Script (.py)",
            export.script(result),
            f"{name}.py",
            "text/x-python",
            key="download_script",
            icon=":material/code:",
            on_click="ignore",
        )
        st.download_button(
            "Notebook (.ipynb)",
            export.notebook(result),
            f"{name}.ipynb",
            "application/x-ipynb+json",
            key="download_notebook",
            icon=":material/menu_book:",
            on_click="ignore",
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
