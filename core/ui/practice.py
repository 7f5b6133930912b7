"""Practice at a lesson's end: an exercise, then questions, one at a time."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, NamedTuple

import streamlit as st

from core.script.differences import changes
from core.script.exercises import MOST_CHARACTERS, Exercise, judge_lines, load
from core.serving.execution_policy import mode
from core.ui import answers, clicks, code_editor, course, format
from core.ui.course import LESSONS, Lesson, link
from core.ui.guess import explain
from core.ui.playground import output
from core.ui.questions import Question
from core.ui.server import engine, explained, run_code, visitor
from to_device.errors import drawable
from to_device.words import Words

MOST_PRINTED = 5_000  # characters that are kept of what an exercise's code prints
# The tries after which the line to change is named, and a solution is shown
HINT, SOLUTION = 2, 3
EMPTY_ROWS = 16  # lines of a field in which somebody writes a whole script
LAST_KEY = "last_questions"  # of the answer that says which questions end the course
words = Words(__file__)
BROKEN = ""  # a sentence on why the exercises can't be read
# Keyed by the title of a lesson, or by the name of a script to repair
EXERCISES: Mapping[str, Exercise] = {}
try:
    EXERCISES = load()
except ValueError as error:
    BROKEN = str(error)


class AnswerKeys(NamedTuple):
    """What a visitor's answers to an exercise are kept under."""

    code: str
    verdict: str
    tries: str
    lines: str  # which lines have to change, where no code is run
    solved: str  # True from the first right answer on


def answer_keys(title: str) -> AnswerKeys:
    key = f"turn_{title}"
    return AnswerKeys(
        key, f"{key}_verdict", f"{key}_tries", f"{key}_lines", f"{key}_solved"
    )


def has_solved(title: str, answers_by_key: Mapping[str, Any]) -> bool:
    """Whether a visitor ever solved an exercise, by code or by the lines to change."""
    keys = answer_keys(title)
    if answers_by_key.get(keys.solved):
        return True
    # Earlier versions kept only the newest answers.
    verdict, chosen = answers_by_key.get(keys.verdict), answers_by_key.get(keys.lines)
    if verdict and verdict.get("solved"):
        return True
    return bool(chosen and judge_lines(EXERCISES[title], chosen["picked"]).solved)


def exercise(title: str) -> None:
    """Draw the exercise of the lesson with this title, and its whole scripts."""
    if BROKEN or title in EXERCISES:
        st.subheader("Your turn")
    if BROKEN:
        st.error(BROKEN, title="The exercise can't be shown")
    elif title in EXERCISES:
        _exercise(title)
    scripts = [name for name in EXERCISES if EXERCISES[name].lesson == title]
    if len(scripts) == 1:
        st.subheader(scripts[0])
        _exercise(scripts[0])
    elif scripts:
        st.subheader("Repair it")
        for tab, name in zip(st.tabs(scripts), scripts, strict=True):
            with tab:
                _exercise(name)


@st.fragment
def _exercise(title: str) -> None:
    exercise, code_mode = EXERCISES[title], mode(engine().ask)
    st.markdown(exercise.ask)
    if exercise.given:
        with st.expander("The lines before yours", icon=":material/database:"):
            st.code(exercise.given, wrap_lines=True)
    if code_mode.kind == "off":
        left, right = st.columns([6, 4], gap="medium")
        with left:
            st.code(
                exercise.code or "# Your script", line_numbers=True, wrap_lines=True
            )
        # page.css keeps it on the screen beside a long script.
        with right, st.container(key=f"answer_{answer_keys(title).lines}"):
            _without_running(title, code_mode.why)
        return
    # At the bottom, so that the verdict is beside the button even of a long script.
    left, right = st.columns([6, 4], gap="medium", vertical_alignment="bottom")
    keys, answers_by_key = answer_keys(title), answers.of_visitor()
    with left, st.form(f"form_{keys.code}", border=False):
        field = st.container()
        buttons = st.container(horizontal=True)
        icon = ":material/play_arrow:"
        checks = buttons.form_submit_button("Check it", icon=icon)
        text = code_editor.text(keys.code)[: MOST_CHARACTERS + 1]
        is_same = text == answers_by_key.get(keys.code)
        if checks and not (is_same and clicks.waited_for(keys.code)):
            with explained("The code was not run"), clicks.taken(keys.code):
                earlier_verdict = answers_by_key.pop(keys.verdict, None)
                tries = answers_by_key.get(keys.tries, 0)
                judge = "core.script.exercises:judge"
                how = code_mode.kind
                verdict = run_code("Running your code", judge, title, text, how)
                verdict = replace(verdict, printed=verdict.printed[:MOST_PRINTED])
                answers.keep(keys.code, text)
                answers.keep(keys.verdict, asdict(verdict))
                answers.keep(keys.tries, tries + verdict.ran)
                if verdict.solved:
                    answers.keep(keys.solved, True)
                if asdict(verdict) == earlier_verdict:
                    ran = "Your code ran again" if is_same else "Your new code ran"
                    st.caption(f"{ran}, and the result is the same.")
    verdict = answers_by_key.get(keys.verdict)
    tries = answers_by_key.get(keys.tries, 0)
    text = answers_by_key.get(keys.code, exercise.code)
    told = ""
    with right, st.container(key=f"answer_{keys.code}"):
        _checklist(exercise, verdict.get("passed", ()) if verdict else ())
        if verdict is None:
            if exercise.checks:
                st.markdown(words("exercise.parts"))
            if exercise.given:
                st.markdown(words("exercise.machines"))
        else:
            told = verdict["say"]
            if tries >= HINT and verdict.get("hint"):
                told += f"\n\n{verdict['hint']}"
            explain(drawable(told), verdict["solved"])
            if verdict["printed"]:
                output(verdict["printed"])
            if verdict["solved"]:
                _download(title, text)
            _solution(title, text, verdict, tries)
    if exercise.code and text != exercise.code:
        look: dict[str, Any] = {"icon": ":material/replay:", "type": "tertiary"}
        look |= {"on_click": _restart, "args": (title,)}
        buttons.form_submit_button("Start again", **look)
    lines = code_editor.lines_in(told)
    with field:
        code_editor.draw(
            "The code",
            keys.code,
            text,
            most=MOST_CHARACTERS,
            rows=1 if exercise.code else EMPTY_ROWS,
            marked=lines,
        )


def _restart(title: str) -> None:
    """Put an exercise's own lines back in its field; the number of tries stays."""
    keys, code = answer_keys(title), EXERCISES[title].code
    st.session_state[keys.code] = {"value": code}
    answers.keep(keys.code, code)
    answers.keep(keys.verdict, None)


def _without_running(title: str, why: str) -> None:
    """Ask which lines of an exercise have to change, where the page runs no code."""
    exercise, key = EXERCISES[title], answer_keys(title).lines
    st.caption(f"You can't run your own code here. {why}")
    if not exercise.code:
        st.markdown(
            "Write this script on your own machine: copy the lines before yours into a "
            "file, and continue there. Then compare your script with this one."
        )
        st.expander("One way to do it").code(exercise.solution, wrap_lines=True)
        return
    numbers = range(1, len(exercise.code.splitlines()) + 1)
    answer = answers.of_visitor().get(key) or {"tries": 0, "picked": []}
    with st.form(f"form_{key}", border=False):
        picked = st.pills(
            words("exercise.which_lines"),
            numbers,
            selection_mode="multi",
            default=[line for line in answer["picked"] if line in numbers],
            key=key,
        )
        answers_now = st.form_submit_button("Answer", icon=":material/check:")
        # The same lines once more, as after a double click, are no other try.
        if answers_now and picked and sorted(picked) != answer["picked"]:
            answer = {"tries": answer["tries"] + 1, "picked": sorted(picked)}
            answers.keep(key, answer)
            if judge_lines(exercise, answer["picked"]).solved:
                answers.keep(answer_keys(title).solved, True)
    if answers_now and not picked:
        st.warning(
            "Press the number of at least one line, and then **Answer**.",
            icon=":material/arrow_upward:",
        )
    if not answer["tries"]:
        return
    verdict = judge_lines(exercise, answer["picked"])
    explain(verdict.say, verdict.solved)
    _solution(title, exercise.code, asdict(verdict), answer["tries"])


def _checklist(exercise: Exercise, passed: Collection[str]) -> None:
    """Draw what the learner's code has to do, ticked as far as it does."""
    rows = []
    for name, label in exercise.checks.items():
        icon = ":green[:material/check_circle:]"
        if name not in passed:
            icon = ":gray[:material/radio_button_unchecked:]"
        rows.append(f"{icon} {label}  ")
    if rows:
        st.markdown("\n".join(rows))


def _download(title: str, text: str) -> None:
    """Offer a solved script as a file, with the lines that it was given."""
    exercise = EXERCISES[title]
    if exercise.lesson:
        st.download_button(
            "Download your script",
            f"{exercise.given}\n{text}".lstrip("\n") + "\n",
            file_name="train.py",
            mime="text/x-python",
            icon=":material/download:",
            key=f"download_{title}",
            on_click="ignore",
        )


def _solution(title: str, text: str, verdict: Mapping[str, Any], tries: int) -> None:
    """Show one way to do it, as changes of the learner's text, after some tries.

    Who has seen it once, since an earlier answer was right, sees it from then on.
    """
    exercise = EXERCISES[title]
    left = 0 if has_solved(title, answers.of_visitor()) else SOLUTION - tries
    if verdict["solved"]:
        st.expander("One way to do it").code(exercise.solution, wrap_lines=True)
    elif left > 0:
        when = "another try" if left == 1 else f"{left} more tries"
        st.caption(f"After {when}, you can see one way to do it.")
    else:
        with st.expander("One way to do it"):
            if exercise.code:
                change = changes(text, exercise.solution)
                st.code(change, language="diff", wrap_lines=True)
            else:  # the learner began with an empty field
                st.code(exercise.solution, wrap_lines=True)


# The questions


def questions(lesson: Lesson) -> None:
    st.subheader("Before you go on")
    if course.BROKEN:
        st.error(course.BROKEN, title="The questions can't be shown")
    if lesson.questions:
        _questions(lesson, _state(lesson))


def _state(lesson: Lesson) -> tuple[bool, bool]:
    """What other parts of the page say of a lesson: whether it's done, and answered."""
    my_answers = answers.of_visitor()
    return lesson.is_done(my_answers), lesson.is_answered(my_answers)


@st.fragment
def _questions(lesson: Lesson, before: tuple[bool, bool]) -> None:
    """Draw one question.

    The answer that completes the lesson redraws the page, so that the course map and
    the end of the course show it. `before` is what they show now.
    """
    if _state(lesson) != before:
        st.rerun()
    said = score(lesson, answers.of_visitor())
    _in_turn(lesson.questions, "", f"asked_{lesson.title}", said)


def again(lesson: Lesson) -> None:
    """Ask a question of an earlier lesson once more, if there is one to ask."""
    question = course.again_on(lesson, answers.of_visitor())
    if question is not None:
        with st.container(border=True, width=700):
            _again(question, lesson.title, question.is_earned(answers.of_visitor()))


@st.fragment
def _again(question: Question, place: str, was_earned: bool) -> None:
    if question.is_earned(answers.of_visitor()) != was_earned:
        st.rerun()  # the course map may have another lesson that is done
    (title,) = (lesson.title for lesson in LESSONS if question in lesson.questions)
    st.markdown(f":material/replay: **Once more, from {title}**")
    _question(question, place)


def last() -> None:
    """Draw the end of the course: some of all its questions, mixed."""
    todo = [
        lesson.title
        for lesson in LESSONS
        if not lesson.further and not lesson.is_answered(answers.of_visitor())
    ]
    if course.BROKEN or not any(lesson.questions for lesson in LESSONS):
        return
    st.subheader("The end of the course")
    if _last_asked(answers.of_visitor())[1]:
        _last()
    elif todo:
        st.markdown(words("last.todo", lessons=format.enumerated(todo)))
    else:
        st.markdown(words("last.begin"))
        _ask_last("Begin")


@st.fragment
def _last() -> None:
    answers_by_key = answers.of_visitor()
    number, asked = _last_asked(answers_by_key)
    place = _last_place(number)
    tries = [question.tries_at(place, answers_by_key) for question in asked]
    pairs = list(zip(tries, asked, strict=True))
    right = sum(given[:1] == [question.right] for given, question in pairs)
    answered = sum(bool(given) for given in tries)
    said = f"**{right} of {answered}** right on the first try" if answered else ""
    _in_turn(asked, place, f"asked_{place}", said)
    if not all(question.right in given for given, question in pairs):
        return
    st.success(
        f"{right} of the {len(asked)} answers were right on the first try.",
        title="That's the end of the course",
        icon=":material/flag:",
    )
    st.markdown(words("last.end"))
    link(course.HOME, "What you can take with you", icon=":material/luggage:")
    unearned = course.unearned(answers_by_key)
    if unearned:
        count = format.counted(len(unearned), "question")
        st.markdown(words("last.unearned", count=count))
        _ask_last("Ask me again")


def _ask_last(label: str) -> None:
    st.button(label, icon=":material/replay:", key="ask_last", on_click=_begin_last)


def _begin_last() -> None:
    number, _ = _last_asked(answers.of_visitor())
    seed = f"{visitor()} {number + 1}"
    keys = [q.key for q in course.last_questions(answers.of_visitor(), seed)]
    answers.keep(LAST_KEY, {"number": number + 1, "keys": keys})


def _last_asked(answers_by_key: Mapping[str, Any]) -> tuple[int, list[Question]]:
    """How often the last questions have been asked, and which they are now."""
    kept = answers_by_key.get(LAST_KEY) or {"number": 0, "keys": []}
    by_key = {q.key: q for lesson in LESSONS for q in lesson.questions}
    return kept["number"], [by_key[key] for key in kept["keys"] if key in by_key]


def _last_place(number: int) -> str:
    return f"The end, {number}"


def _in_turn(questions: Sequence[Question], place: str, key: str, said: str) -> None:
    """Draw the chosen one of these questions, and what is `said` of all of them.

    `place` is where they come again; "" on the page of their own lesson.
    """
    numbers = range(len(questions))
    tries = [_tries(question, place) for question in questions]
    unsolved = [i for i in numbers if questions[i].right not in tries[i]]

    def label(number: int) -> str:
        return f"{number + 1}{_icon(questions[number], tries[number])}"

    st.session_state.setdefault(key, unsolved[0] if unsolved else 0)
    with st.container(horizontal=True, vertical_alignment="center"):
        number = st.segmented_control(
            "Question",
            numbers,
            format_func=label,
            required=True,
            key=key,
            label_visibility="collapsed",
        )
        st.markdown(said)
    question = questions[number or 0]
    _question(question, place)
    following = [i for i in unsolved if i > (number or 0)] or unsolved
    if question.right in tries[number or 0] and following:
        st.button(
            "Next question",
            icon=":material/arrow_downward:",
            key=f"next_{key}",
            on_click=st.session_state.update,
            args=({key: following[0]},),
        )


def _question(question: Question, place: str = "") -> None:
    """Draw a question with its newest answer, and the answer's explanation."""
    tries, order = _tries(question, place), question.shuffled(f"{visitor()}{place}")
    if question.code:
        st.code(question.code, line_numbers=True, wrap_lines=True)
    st.radio(
        question.text,
        order,
        index=order.index(tries[-1]) if tries else None,
        key=_key(question, place),
        on_change=_add_answer,
        args=(question, place),
    )
    if tries:
        is_right = tries[-1] == question.right
        said = question.answers[tries[-1]]
        explain(said if is_right else f"**Not quite.** {said}", is_right)
    if tries and question.code:
        _run(question, place)


def _key(question: Question, place: str) -> str:
    return f"{question.key} {place}".rstrip()


def _tries(question: Question, place: str) -> list[str]:
    answers_by_key = answers.of_visitor()
    if place:
        return question.tries_at(place, answers_by_key)
    return question.tries(answers_by_key)


def _run(question: Question, place: str) -> None:
    """Draw a button that runs the question's code, and then what the code printed."""
    key = f"run_{_key(question, place)}"
    if not st.button("Run it", icon=":material/play_arrow:", key=key):
        return
    run, request = "core.jobs.code:run", question.request()
    with explained("The code was not run"):
        report, printed = run_code("Running the code", run, request, "own")
        if failure := report["failure"]:
            printed += f"line {failure['line']['line']}, {failure['kind']}: "
            printed += failure["message"]
        output(printed or "\n".join(report["notes"]))
        if question.gpu and not question.measured:
            st.caption("This code ran on a simulated GPU.")


def _icon(question: Question, tries: Sequence[str]) -> str:
    if not tries:
        return ""
    if question.right not in tries:
        return " :material/lightbulb:"
    color = "green" if tries[0] == question.right else "gray"
    return f" :{color}[:material/check:]"


def score(lesson: Lesson, answers_by_key: Mapping[str, Any]) -> str:
    """A sentence on right first tries and on questions left; "" before any answer."""
    tried = [q for q in lesson.questions if q.tries(answers_by_key)]
    if not tried:
        return ""
    right = sum(question.at_first(answers_by_key) for question in tried)
    text = f"**{right} of {len(tried)}** right on the first try"
    left = len(lesson.questions) - lesson.solved(answers_by_key)
    if left:
        return f"{text}, {left} to go"
    if lesson.is_done(answers_by_key):
        return f"{text}. This lesson is done."
    later = len(lesson.questions) - lesson.earned(answers_by_key)
    return f"{text}. {later} of them will come again on a later page."


def _add_answer(question: Question, place: str) -> None:
    answer = answers.chosen(_key(question, place), question.answers)
    if not answer:
        return
    tries = question.after(_tries(question, place), answer)
    if place:
        places = answers.of_visitor().get(question.again_key) or {}
        answers.keep(question.again_key, places | {place: tries})
    else:
        answers.keep(question.key, tries)
