"""Make the classic mistakes on purpose, and find yours by its message."""

import streamlit as st

from core.lessons.mistakes import catalogue_page as mistakes
from core.lessons.mistakes import script_page
from core.ui import frame, simulated
from core.ui.server import engine

frame.begin("Mistakes")
left, right = st.columns([3, 8])
with left:
    found = mistakes.searched()
    chosen = mistakes.opened(found)
    mistakes.listed(found, chosen)
with right:
    mistakes.card(chosen)
    machine = engine().machine()
    if machine:
        simulated.tell_why_not(machine)
    with st.expander("The code behind this page", icon=":material/code:"):
        mistakes.code()

st.subheader("Check my script")
script_page.draw()

frame.end("Mistakes")
