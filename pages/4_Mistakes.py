"""Make the classic mistakes on purpose, and find yours by its message."""

import streamlit as st

from core.lessons.mistakes import answer_page as answers
from core.lessons.mistakes import catalogue_page as mistakes
from core.lessons.mistakes import script_page
from core.ui import frame, simulated
from core.ui.server import engine

frame.begin("Mistakes")
left, right = st.columns([3, 8])
with left:
    answer = answers.searched()
if answer:
    with right:
        answers.draw(answer)
    left, right = st.columns([3, 8])
with left:
    found = answers.to_see(answer)
    chosen = mistakes.opened(found, answered=answer is not None)
    mistakes.listed(found, chosen)
with right:
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
