"""Practice at a lesson's end: an exercise, then questions, one at a time.

Code of an exercise is read with `ast` and never run.
"""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from core.script.exercises import MOST_CHARACTERS, Exercise, judge, load
from core.ui import answers, code_editor, course
from core.ui.course import Lesson
from core.ui.questions import Question
from core.ui.server import visitor

BROKEN = ""  # why there are no exercises, in a sentence
EXERCISES: Mapping[str, Exercise] = {}  # by their lessons' titles
try:
    EXERCISES = load()
except ValueError as error:
    BROKEN = str(error)


def exercise(title: str) -> None:
    """The exercise of the lesson of that title, if it has one."""
    if BROKEN or title in EXERCISES:
        st.subheader("Your turn")
    if BROKEN:
        st.error(BROKEN, title="The exercise can't be shown")
    elif title in EXERCISES:
        _exercise(f"turn_{title}", EXERCISES[title])


@st.fragment
def _exercise(key: str, exercise: Exercise) -> None:
    written = answers.given().get(key)  # the last answer that was checked
    verdict = None if written is None else judge(exercise, written)
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
        icon = ":material/fact_check:"
        st.form_submit_button("Check it", icon=icon, on_click=_check, args=(key,))
    with right:
        if verdict is None:
            st.markdown(
                "Change the lines, then press **Check it**. Your code is read, not run."
            )
            return
        _explain(verdict.say, verdict.solved)
        with st.expander("One way to do it"):
            st.code(exercise.solution)


def _check(key: str) -> None:
    answers.keep(key, code_editor.text(key))


def _explain(text: str, is_right: bool) -> None:
    if is_right:
        st.success(text, icon=":material/check:")
    else:
        st.info(text, icon=":material/lightbulb:")


def questions(lesson: Lesson) -> None:
    """The questions of the lesson, or why there are none."""
    st.subheader("Before you go on")
    if course.BROKEN:
        st.error(course.BROKEN, title="The questions can't be asked")
    if lesson.questions:
        _questions(lesson, lesson.is_done(answers.given()))


@st.fragment
def _questions(lesson: Lesson, was_done: bool) -> None:
    """One question; the last answer draws the page anew, for the course map."""
    given, key = answers.given(), f"asked_{lesson.title}"
    if lesson.is_done(given) != was_done:
        st.rerun()
    numbers = range(len(lesson.questions))
    left = [i for i in numbers if not lesson.questions[i].is_solved(given)]
    st.session_state.setdefault(key, left[0] if left else 0)
    with st.container(horizontal=True, vertical_alignment="center"):
        number = st.segmented_control(
            "Question",
            numbers,
            format_func=lambda i: f"{i + 1}{_mark(lesson.questions[i], given)}",
            required=True,
            key=key,
            label_visibility="collapsed",
        )
        st.markdown(score(lesson, given))
    question = lesson.questions[number or 0]
    tries, order = question.tries(given), question.shuffled(visitor())
    st.radio(
        question.text,
        order,
        index=order.index(tries[-1]) if tries else None,
        key=question.key,
        on_change=_answer,
        args=(question,),
    )
    if tries:
        _explain(question.answers[tries[-1]], tries[-1] == question.right)
    following = [i for i in left if i > (number or 0)] or left
    if question.is_solved(given) and following:
        st.button(
            "Next question",
            icon=":material/arrow_downward:",
            key=f"next_{key}",
            on_click=st.session_state.update,
            args=({key: following[0]},),
        )


def _mark(question: Question, given: Mapping[str, Any]) -> str:
    """Green where the first try was right, gray where a later one was."""
    if not question.tries(given):
        return ""
    if not question.is_solved(given):
        return " :material/lightbulb:"
    return f" :{'green' if question.at_first(given) else 'gray'}[:material/check:]"


def score(lesson: Lesson, given: Mapping[str, Any]) -> str:
    """How many were right on the first try, and how many are left; empty at first."""
    tried = [each for each in lesson.questions if each.tries(given)]
    if not tried:
        return ""
    right = sum(each.at_first(given) for each in tried)
    left = len(lesson.questions) - lesson.solved(given)
    rest = f", {left} to go" if left else ". This lesson is done."
    return f"**{right} of {len(tried)}** right on the first try{rest}"


def _answer(question: Question) -> None:
    tries = question.tries(answers.given())
    chosen = st.session_state[question.key]
    answers.keep(question.key, question.after(tries, chosen))
