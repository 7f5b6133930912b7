"""One training script for the CPU and for any device, side by side, and run."""

from typing import Any

import streamlit as st

from core.halves import read
from core.lessons.mistakes.catalogue_page import link_to
from core.script.differences import changed_lines
from core.ui import format, frame, playground, simulated
from core.ui.course import link, page
from core.ui.server import ask_once, explained
from core.ui.source import marked
from to_device.dryrun.report import Request
from to_device.words import Words

NAME = "train.py"
SCRIPTS = {  # keyed by heading
    "Before: on the CPU": "core.lessons.model.train_on_cpu",
    "After: on any device": "core.lessons.model.train_on_any_device",
}
# The line that chooses the device is the longest; it should break at its spaces alone.
WIDTHS = 43, 57
words = Words(__file__)


def draw() -> None:
    """Draw both scripts with the changed lines marked, and run them when asked."""
    st.markdown(words("port.intro"), width=frame.PROSE)
    texts = [read(module) for module in SCRIPTS.values()]
    icon = ":material/play_arrow:"
    # Above the scripts, which are higher than the screen of a laptop
    if st.button("Run both", type="primary", icon=icon, key="run_both"):
        _run(texts)
    if reports := st.session_state.get("ported"):
        _outcome(texts[1], *reports)
    lines_by_column = (), changed_lines(*texts)
    for column, heading, text, lines in zip(
        st.columns(WIDTHS, gap="small"), SCRIPTS, texts, lines_by_column, strict=True
    ):
        column.markdown(f"**{heading}**")
        column.code(marked(text, lines), wrap_lines=True)


def _run(texts: list[str]) -> None:
    """Run the first script without a GPU, and the second one with a simulated GPU."""
    with explained("The scripts were not run"), st.spinner("Running both"):
        st.session_state.ported = [
            ask_once(
                "core.jobs.code:run",
                Request(NAME, text, steps=10**6, simulates=has_gpu),
                "own",
            )
            for text, has_gpu in zip(texts, (False, True), strict=True)
        ]


def _outcome(ported: str, *reports: tuple[dict[str, Any], str]) -> None:
    columns = st.columns(WIDTHS, gap="small")
    for column, (report, printed) in zip(columns, reports, strict=True):
        with column:
            playground.output(printed or "\n".join(report["notes"]))
    copies = [copy for copy in reports[1][0]["copies"] if copy["way"] == "to device"]
    if not copies:  # the run didn't end, as its notes say
        return
    with columns[0]:
        st.markdown("On the CPU, everything is in the same memory, so nothing moved.")
    with columns[1], simulated.outline("ported"):
        size = format.size(sum(copy["bytes"] for copy in copies))
        numbers = sorted({copy["line"]["line"] for copy in copies})
        lines = ported.splitlines()
        moves = format.enumerated(f"`{lines[n - 1].strip()}`" for n in numbers)
        st.markdown(
            f"In each step, {moves} copied {size} to the device. "
            "The model's weights crossed once, before the first step. "
            "The losses are the same, since both start from the same "
            "seed."
        )
    with st.container(horizontal=True):
        link(
            page("Train"), "Now port a script yourself: the task is at the end of Train"
        )
        link_to("model_not_moved")
