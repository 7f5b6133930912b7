"""Before you go on: the questions at a lesson's end, one at a time."""

import streamlit as st

from core.ui import answers, course
from core.ui.course import Lesson
from core.ui.questions import Question
from core.ui.server import visitor


def draw(lesson: Lesson) -> None:
    """The questions of the lesson, or why there are none."""
    st.subheader("Before you go on")
    if course.BROKEN:
        st.error(course.BROKEN, title="The questions can't be asked")
    if lesson.questions:
        _ask(lesson, lesson.is_done(answers.given()))


@st.fragment
def _ask(lesson: Lesson, was_done: bool) -> None:
    """One question; the page anew once it is the last, since the course map has it."""
    given, asked = answers.given(), f"asked_{lesson.title}"
    if lesson.is_done(given) != was_done:
        st.rerun()
    left = [
        number
        for number, each in enumerate(lesson.questions)
        if not each.is_solved(given)
    ]
    st.session_state.setdefault(asked, left[0] if left else 0)
    with st.container(horizontal=True, vertical_alignment="center"):
        number = st.segmented_control(
            "Question",
            range(len(lesson.questions)),
            format_func=lambda each: _mark(lesson.questions[each], each, given),
            required=True,
            key=asked,
            label_visibility="collapsed",
        )
        st.markdown(score(lesson, given))
    question = lesson.questions[number or 0]
    _choices(question)
    after = [each for each in left if each > (number or 0)] or left
    if question.is_solved(given) and after:
        st.button(
            "Next question",
            icon=":material/arrow_downward:",
            key=f"next_{asked}",
            on_click=st.session_state.update,
            args=({asked: after[0]},),
        )


def _mark(question: Question, number: int, given: dict) -> str:
    """Its number, and whether it is answered: green where the first try was right."""
    if not question.tries(given):
        return f"{number + 1}"
    if not question.is_solved(given):
        return f"{number + 1} :material/lightbulb:"
    color = "green" if question.at_first(given) else "gray"
    return f"{number + 1} :{color}[:material/check:]"


def score(lesson: Lesson, given: dict) -> str:
    """How many were right on the first try, and how many are left; at first empty."""
    asked = lesson.questions
    tried = [each for each in asked if each.tries(given)]
    if not tried:
        return ""
    right = sum(each.at_first(given) for each in tried)
    left = len(asked) - lesson.solved(given)
    rest = f", {left} to go" if left else ". This lesson is done."
    return f"**{right} of {len(tried)}** right on the first try{rest}"


def _choices(question: Question) -> None:
    """The answers; what to say to the newest try stands below them."""
    tries = question.tries(answers.given())
    order = question.shuffled(visitor())
    st.radio(
        question.text,
        order,
        index=order.index(tries[-1]) if tries else None,
        key=question.key,
        on_change=_chosen,
        args=(question,),
    )
    if not tries:
        return
    chosen = tries[-1]
    if chosen == question.right:
        st.success(question.answers[chosen], icon=":material/check:")
    else:
        st.info(question.answers[chosen], icon=":material/lightbulb:")


def _chosen(question: Question) -> None:
    tries = question.tries(answers.given())
    chosen = st.session_state[question.key]
    answers.keep(question.key, question.after(tries, chosen))
