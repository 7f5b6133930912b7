"""Climb from the textbook loop to the limit of the machine."""

import streamlit as st

from core.ui import frame, labs
from core.ui.course import lesson
from core.ui.server import engine

HERE = lesson("Speed")

frame.begin(HERE)
frame.wait_for_machine()
machine = engine().machine()
if machine is None:
    st.markdown(":material/hourglass: The workers are loading torch.")
    st.stop()

labs.draw(machine)

frame.end(HERE)
