"""Make the classic mistakes on purpose, and look up your own error message."""

import streamlit as st

from core.lessons.mistakes import answer_page as answers
from core.lessons.mistakes import catalogue_page as mistakes
from core.lessons.mistakes import script_page
from core.ui import frame, simulated
from core.ui.server import engine

frame.begin("Mistakes")
answer = answers.ask()

mistake = mistakes.choice(answer)
mistakes.draw_list(mistake)
if mistake:
    mistakes.card(mistake)
machine = engine().machine()
if machine:
    simulated.tell(machine)
with st.expander("The code behind this page", icon=":material/code:"):
    mistakes.code()

st.header("Check my script")
script_page.draw()

frame.end("Mistakes")
