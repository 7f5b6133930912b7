"""Your turn: a few lines to mend on the page, read with `ast` and never run."""

from collections.abc import Mapping

import streamlit as st

from core.mistakes.script.exercises import MOST_CHARACTERS, Exercise, judge, load
from core.ui import answers, code_editor

BROKEN = ""  # why there are no exercises, in a sentence
EXERCISES: Mapping[str, Exercise] = {}
try:
    EXERCISES = load()
except ValueError as error:
    BROKEN = str(error)


def draw(title: str) -> None:
    """The exercise of the lesson of that title."""
    if BROKEN:
        st.subheader("Your turn")
        st.error(BROKEN, title="The exercise can't be shown")
    elif title in EXERCISES:
        _exercise(title, EXERCISES[title])


@st.fragment
def _exercise(title: str, exercise: Exercise) -> None:
    """What to mend on the left; on the right how it went, once it was checked."""
    key = f"turn_{title}"
    written = answers.given().get(key)  # what was checked last
    verdict = judge(exercise, written) if written is not None else None
    st.subheader("Your turn")
    st.markdown(exercise.ask)
    left, right = st.columns([6, 4], gap="medium")
    with left, st.form(f"form_{key}", border=False):
        code_editor.draw(
            "The code",
            key,
            exercise.code if written is None else written,
            most=MOST_CHARACTERS,
            marked=code_editor.lines_in(verdict.say) if verdict else (),
        )
        st.form_submit_button(
            "Check it",
            icon=":material/fact_check:",
            on_click=_check,
            args=(key,),
        )
    with right:
        if verdict is None:
            st.markdown(
                "Change the lines, then press **Check it**. Your code is read, not run."
            )
        elif verdict.solved:
            st.success(verdict.say, icon=":material/check:")
        else:
            st.info(verdict.say, icon=":material/lightbulb:")
        if verdict is not None:
            with st.expander("One way to do it"):
                st.code(exercise.solution)


def _check(key: str) -> None:
    """Keep what was written, for the next visit as well."""
    answers.keep(key, code_editor.text(key))
