"""Make the classic mistakes on purpose, and find yours by its message."""

import streamlit as st

from core.lessons.mistakes import answer_page as answers
from core.lessons.mistakes import catalogue_page as mistakes
from core.lessons.mistakes import script_page
from core.ui import frame, simulated
from core.ui.server import engine

frame.begin("Mistakes")
answer = answers.ask()

chosen = mistakes.opened(answers.to_see(answer), answered=answer is not None)
mistakes.listed(chosen)
if chosen:
    mistakes.card(chosen)
machine = engine().machine()
if machine:
    simulated.tell(machine)
with st.expander("The code behind this page", icon=":material/code:"):
    mistakes.code()

st.subheader("Check my script")
script_page.draw()

frame.end("Mistakes")
