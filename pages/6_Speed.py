"""Climb from the textbook loop to the limit of the machine."""

import streamlit as st

from core.ui import dataset, frame
from core.ui.source import show
from core.ui.speed import copies, ladder, loader, memory, vectorize

LABS = (loader, memory, vectorize, copies)

frame.begin("Speed", wide=True)
machine = frame.machine()
climbed, *sections = st.tabs(["The ladder", *(each.LAB.title for each in LABS)])

with climbed:
    ladder.draw(machine, dataset.is_here(machine))
    with st.expander("How it is measured", icon=":material/code:"):
        show(
            "Each rung begins with the same weights. Some steps come first, so that no "
            "epoch pays for what is set up in them; then every epoch is timed from an "
            "idle device to an idle device. From `core/speed/climb.py`.",
            "core.speed.climb:measure",
            "The headline: once all rungs are climbed, the textbook loop and the best "
            "rung take turns. The gains multiplied would be no measurement, since the "
            "machine may have changed between two rungs.",
            "core.speed.climb:take_turns",
            "The rate that the limit is computed with, from `core/speed/roofline.py`.",
            "core.speed.roofline:matmul_rate",
        )

for lab, section in zip(LABS, sections, strict=True):
    with section:
        lab.draw(machine)

frame.end("Speed")
