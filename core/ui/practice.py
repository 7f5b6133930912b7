"""Practice at a lesson's end: an exercise, then questions, one at a time."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import streamlit as st

from core.errors import drawable
from core.script.exercises import MOST_CHARACTERS, Exercise, Verdict, load
from core.serving.execution_policy import Mode, mode
from core.ui import answers, code_editor, course
from core.ui.course import Lesson
from core.ui.guess import explain
from core.ui.playground import output
from core.ui.questions import Question
from core.ui.server import engine, explained, run_code, visitor

JUDGE = "core.script.exercises:judge"
RUN = "core.jobs.code:run"
BROKEN = ""  # a sentence on why the exercises can't be read
EXERCISES: Mapping[str, Exercise] = {}  # keyed by a lesson's title or a repair's name
try:
    EXERCISES = load()
except ValueError as error:
    BROKEN = str(error)


def exercise(title: str) -> None:
    """Draw the exercise of the lesson with this title, and its scripts to repair."""
    if BROKEN or title in EXERCISES:
        st.subheader("Your turn")
    if BROKEN:
        st.error(BROKEN, title="The exercise can't be shown")
    elif title in EXERCISES:
        _exercise(title, EXERCISES[title])
    if repairs := [name for name, each in EXERCISES.items() if each.lesson == title]:
        st.subheader("Repair it")
        for tab, name in zip(st.tabs(repairs), repairs, strict=True):
            with tab:
                _exercise(name, EXERCISES[name])


@st.fragment
def _exercise(title: str, exercise: Exercise) -> None:
    st.markdown(exercise.ask)
    key, how = f"turn_{title}", mode(engine().ask)
    if how.kind == "off":
        _unjudged(exercise, how)
        return
    left, right = st.columns([6, 4], gap="medium")
    with left, st.form(f"form_{key}", border=False):
        field = st.container()
        icon = ":material/play_arrow:"
        if st.form_submit_button("Check it", icon=icon):
            with explained("The code was not run"):
                _judge(key, title, how)
    stored = answers.of_visitor()
    written, verdict = stored.get(key), stored.get(f"{key}_verdict")
    with right:
        if verdict is None:
            st.markdown("Change the lines, then press **Check it** to run them.")
        else:
            explain(drawable(verdict["say"]), verdict["solved"])
            if verdict["printed"]:
                output(verdict["printed"])
            with st.expander("One way to do it"):
                st.code(exercise.solution, wrap_lines=True)
    text = exercise.code if written is None else written
    lines = code_editor.lines_in(verdict["say"]) if verdict else ()
    with field:
        code_editor.draw("The code", key, text, most=MOST_CHARACTERS, marked=lines)


def _judge(key: str, title: str, how: Mode) -> None:
    text = code_editor.text(key)
    before = answers.of_visitor().pop(f"{key}_verdict", None)
    doing, confine = "Running your code", how.kind == "confined"
    verdict: Verdict = run_code(doing, JUDGE, title, text, confine)
    answers.keep(key, text)
    answers.keep(f"{key}_verdict", asdict(verdict))
    if asdict(verdict) == before:
        st.caption("Your code ran again, and the result is the same.")


def _unjudged(exercise: Exercise, how: Mode) -> None:
    """Draw the exercise with its solution, since nobody can run code here."""
    left, right = st.columns([6, 4], gap="medium")
    left.code(exercise.code, line_numbers=True, wrap_lines=True)
    right.caption(f"You can't run code here. {how.why}")
    with right.expander("One way to do it"):
        st.code(exercise.solution, wrap_lines=True)


def questions(lesson: Lesson) -> None:
    st.subheader("Before you go on")
    if course.BROKEN:
        st.error(course.BROKEN, title="The questions can't be shown")
    if lesson.questions:
        _questions(lesson, lesson.is_done(answers.of_visitor()))


@st.fragment
def _questions(lesson: Lesson, was_done: bool) -> None:
    """Draw one question.

    The answer that completes the lesson redraws the page, so that the course map shows
    that the lesson is done. `was_done` is whether the map shows this already.
    """
    given, key = answers.of_visitor(), f"asked_{lesson.title}"
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
    if question.code:
        st.code(question.code, line_numbers=True, wrap_lines=True)
    st.radio(
        question.text,
        order,
        index=order.index(tries[-1]) if tries else None,
        key=question.key,
        on_change=_answer,
        args=(question,),
    )
    if tries:
        explain(question.answers[tries[-1]], tries[-1] == question.right)
    if tries and question.code:
        _run(question)
    following = [i for i in left if i > (number or 0)] or left
    if question.is_solved(given) and following:
        st.button(
            "Next question",
            icon=":material/arrow_downward:",
            key=f"next_{key}",
            on_click=st.session_state.update,
            args=({key: following[0]},),
        )


def _run(question: Question) -> None:
    """Draw a button that runs the question's code, and then what the code printed."""
    if not st.button("Run it", icon=":material/play_arrow:", key=f"run_{question.key}"):
        return
    with explained("The code was not run"):
        report, printed = run_code("Running the code", RUN, question.request(), False)
        if failure := report["failure"]:
            printed += f"line {failure['line']['line']}, {failure['kind']}: "
            printed += failure["message"]
        output(printed or "\n".join(report["notes"]))
        if question.gpu and not question.measured:
            st.caption("This code ran on a simulated GPU.")


def _mark(question: Question, given: Mapping[str, Any]) -> str:
    """The icon beside a question's number; "" without an answer.

    A check is green if the first try was right, and gray if a later try was right. A
    light bulb means that no try was right yet.
    """
    if not question.tries(given):
        return ""
    if not question.is_solved(given):
        return " :material/lightbulb:"
    return f" :{'green' if question.at_first(given) else 'gray'}[:material/check:]"


def score(lesson: Lesson, given: Mapping[str, Any]) -> str:
    """A sentence on how many first tries were right, and how many questions are left.

    The sentence is "" before the first answer.
    """
    tried = [each for each in lesson.questions if each.tries(given)]
    if not tried:
        return ""
    right = sum(each.at_first(given) for each in tried)
    left = len(lesson.questions) - lesson.solved(given)
    rest = f", {left} to go" if left else ". This lesson is done."
    return f"**{right} of {len(tried)}** right on the first try{rest}"


def _answer(question: Question) -> None:
    tries = question.tries(answers.of_visitor())
    chosen = st.session_state[question.key]
    answers.keep(question.key, question.after(tries, chosen))
