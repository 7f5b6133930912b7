"""The class for its teacher: students, rules, guesses, questions, handout, and log."""

from functools import partial

import streamlit as st

from core.classroom import guesses_page as guesses
from core.classroom import handout_page as handout
from core.classroom import questions_page as questions
from core.classroom import rules_page as rules
from core.classroom import scripts_page as scripts
from core.classroom import sign_in_page as sign_in
from core.classroom import teacher_page as teacher
from core.ui import frame
from core.ui.server import explained, tell_notice

frame.begin("Teacher")
tell_notice(toast=True)
if sign_in.teacher() is None:
    sign_in.draw()
    st.stop()

chosen = None
with explained("The list of classes can't be read right now"):
    chosen = teacher.choose()
if chosen is None:
    st.stop()

with explained("The class's data can't be read right now"):
    frame.sections(
        {
            "The room": partial(teacher.students, chosen),
            "What they may do": partial(rules.draw, chosen),
            "Guesses": partial(guesses.reveal, chosen),
            "Questions": partial(questions.draw, chosen),
            "Scripts": partial(scripts.draw, chosen),
            "Afterward": partial(handout.draw, chosen),
            "Log": partial(teacher.log, chosen),
        }
    )
