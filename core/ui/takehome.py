"""A run to take home: the downloads, for every page that shows a finished run."""

import streamlit as st

from core import export
from core.reports import RunResult
from core.ui.runs import Run


def downloads(shown: Run) -> None:
    """Script, notebook and command line of a finished run."""
    result = shown.result
    assert result is not None
    if not result.config.has_images:
        st.markdown(
            "Script and notebook are offered for runs on images. This run is repeated "
            "with this app's own code, in its folder:"
        )
        st.code(export.command(result.config), language="bash", wrap_lines=True)
        return
    name = file_name(shown)
    st.markdown(
        f"This run without this app. The script trains with the same settings and ends "
        f"with the same **{result.test_accuracy:.2%}** on the same machine, with the "
        "same versions and the same data. It needs torch"
        + (
            ", and torchvision where the data is still to be downloaded."
            if result.config.task == "fashion-mnist"
            else "; the sprites are drawn by the script itself."
        )
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
