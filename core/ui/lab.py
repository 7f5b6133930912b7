"""What the labs of Speed and Scale have in common; each is a module of its own."""

from dataclasses import dataclass

import streamlit as st

from core.measure.environment import Machine
from core.ui.frame import PROSE
from core.ui.job_panel import Draw, JobPanel
from core.ui.source import code_tabs

SIDES = [6, 4]  # a chart, and beside it what it says


@dataclass(frozen=True)
class Lab:
    """Something to measure: why, where it is started and shown, and its code."""

    title: str  # of its tab
    text: str
    what: str  # is measured: "loaders"
    panel: JobPanel
    empty: str  # what will appear
    code: str  # what is said of it
    tabs: tuple[tuple[str, str], ...]  # a name and the address of the code
    on_a_cpu: str = ""  # what the text also says where there is no accelerator

    def begin(self, machine: Machine, more: str = "") -> None:
        """What it is about."""
        alone = machine.devices[0].backend == "CPU"
        text = self.text + (self.on_a_cpu if alone else "")
        st.markdown(f"{text} {more}", width=PROSE)

    def buttons(self, arguments: tuple | None) -> None:
        """Start and Cancel."""
        self.panel.buttons(f"Measure {self.what}", arguments)

    def follow(self, draw: Draw) -> None:
        """The newest result as `draw` draws it, and the code that ran."""
        self.panel.follow(draw, self.empty)
        with st.expander(
            f"{self.panel.code_title}: {self.what}", icon=":material/code:"
        ):
            st.markdown(self.code)
            code_tabs(*self.tabs)
