"""Climb from the textbook loop to the limit of the machine."""

from functools import partial

import streamlit as st

from core.ui import dataset, frame
from core.ui.sections import sections
from core.ui.source import show
from core.ui.speed import copies, ladder, loader, memory, vectorize

LABS = (loader, memory, vectorize, copies)

frame.begin("Speed", wide=True)
machine = frame.machine()


def climbed() -> None:
    ladder.draw(machine, dataset.is_here(machine))
    with st.expander("How it is measured", icon=":material/code:"):
        show(
            "Every rung starts from the same weights. A few steps come first, so that "
            "no epoch pays for the setup; then each epoch is timed, from idle device "
            "to idle device. From `core/speed/climb.py`.",
            "core.speed.climb:measure",
            "The headline: once all rungs are climbed, the textbook loop and the best "
            "rung take turns. Multiplying the gains would be no measurement, since the "
            "machine may have changed between two rungs.",
            "core.speed.climb:take_turns",
            "The rate behind the limit, from `core/speed/roofline.py`.",
            "core.speed.roofline:matmul_rate",
        )


labs = {each.LAB.title: partial(each.draw, machine) for each in LABS}
sections({"The ladder": climbed} | labs)
frame.end("Speed")
