"""The class in a teacher's hands: who is in it, what it may do, what remains of it."""

from functools import partial

import streamlit as st

from core.ui import frame
from core.ui.classroom.teacher import (
    acts,
    classes,
    keep,
    log,
    questions,
    rules,
    sign_in,
    students,
)
from core.ui.sections import sections
from core.ui.server import explained, store

frame.begin("Teacher")
if sign_in.teacher() is None:
    sign_in.draw()
    st.stop()

acts.tell()
chosen = None
with explained("The classes can't be read right now"):
    chosen = classes.choose()
if chosen is None:
    st.stop()


def asked() -> None:
    questions.draw(store().answers.of_class(chosen.id, questions.KEYS))


with explained("The class can't be read right now"):
    sections(
        {
            "The room": partial(students.draw, chosen),
            "What they may do": partial(rules.draw, chosen),
            "Questions": asked,
            "Afterwards": partial(keep.draw, chosen),
            "Log": partial(log.draw, chosen),
        }
    )
