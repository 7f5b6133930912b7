import re
from unittest.mock import Mock

import pytest
from streamlit.testing.v1 import AppTest

from core.script.exercises import Verdict
from core.serving.execution_policy import Mode
from core.store.store import Store
from core.ui import answers, course, practice
from core.ui.course import LESSONS
from core.ui.practice import EXERCISES
from tests.app.pages.walk import code_in, texts, write_code

MODE = Mode("here")
SLIP = "mine ("
FIRST, *LATER = LESSONS[0].questions


@pytest.fixture(autouse=True)
def store(tmp_path, monkeypatch):
    opened = Store(f"sqlite:///{tmp_path / 'app.sqlite'}")
    monkeypatch.setattr(answers, "store", lambda: opened)
    monkeypatch.setattr(answers, "visitor_of_cookie", lambda: "me")
    monkeypatch.setattr(practice, "visitor", lambda: "me")
    monkeypatch.setattr(practice, "mode", lambda _: MODE)
    monkeypatch.setattr(practice, "engine", Mock)
    monkeypatch.setattr(practice, "run_code", judged)
    monkeypatch.setattr(practice, "link", Mock())  # a script of a test has no pages
    yield opened
    opened.close()


def judged(_: str, __: str, title: str, text: str, how: str) -> Verdict:
    assert how == "here"
    if text == EXERCISES[title].solution:
        return Verdict(True, EXERCISES[title].right)
    return Verdict(
        False,
        "Line 2: what is wrong. \ud800",
        "what it printed \ud83d",
        hint="Change line 1. It is why.",
        passed=tuple(EXERCISES[title].checks)[:1],
        ran=text != SLIP,
    )


def page(part: str, title: str) -> None:
    from core.ui import course, practice

    if part in ("again", "last"):
        again = practice.again
        again(course.page(title)) if part == "again" else practice.last()
    elif part == "exercise":
        repair = practice.EXERCISES.get(title)
        practice.exercise(repair.lesson if repair and repair.lesson else title)
    else:
        practice.questions(course.page(title))


def opened(part: str = "questions", title: str = "Device") -> AppTest:
    return AppTest.from_function(page, default_timeout=60, args=(part, title)).run()


def page_text(at: AppTest) -> str:
    return texts([*at.markdown, *at.info, *at.success])


def place(at: AppTest, title: str) -> int:
    return [field.key for field in at.get("bidi_component")].index(f"turn_{title}")


def check(at: AppTest, title: str, code: str) -> AppTest:
    write_code(at, f"turn_{title}", code)
    checks = [button for button in at.button if button.label == "Check it"]
    return checks[place(at, title)].click().run()


SCRIPTS = [title for title, exercise in EXERCISES.items() if exercise.lesson]


@pytest.mark.parametrize("title", ["Device", *SCRIPTS])
def test_an_exercise_is_judged_and_found_again_in_another_tab(title):
    exercise = EXERCISES[title]
    at = opened("exercise", title)
    number = place(at, title)
    assert code_in(at, number)["value"] == exercise.code
    assert not at.info
    assert "what is wrong" in texts(check(at, title, "mine").info)
    assert "what it printed" in texts(at.code)
    assert exercise.right in texts(check(at, title, exercise.solution).success)
    assert bool(at.get("download_button")) == (title in SCRIPTS)
    assert not at.exception
    again = opened("exercise", title)
    assert code_in(again, number)["value"] == exercise.solution
    assert again.success


def test_each_try_tells_more(monkeypatch):
    monkeypatch.setattr(practice.clicks, "AT_ONCE_SECONDS", 0.0)
    at = opened("exercise", "Port it")
    number, shown = place(at, "Port it"), []
    check(at, "Port it", SLIP)  # this is no try
    for _ in range(practice.SOLUTION):
        check(at, "Port it", "mine")
        shown.append((code_in(at, number)["marked"], len(at.expander)))
    assert shown == [([2], 1), ([2, 1], 1), ([2, 1], 2)]  # one has the lines before
    (change,) = [code.value for code in at.code if code.language == "diff"]
    assert "-mine" in change.splitlines()
    at = opened("exercise", "Port it")
    assert len(at.expander) == 2


def test_whoever_has_spoiled_a_script_starts_again_with_its_own_lines():
    at = opened("exercise", "Port it")
    number = place(at, "Port it")

    def again() -> list:
        return [button for button in at.button if button.label == "Start again"]

    assert not again()
    check(at, "Port it", "mine")
    assert at.info
    again()[0].click().run()
    assert code_in(at, number)["value"] == EXERCISES["Port it"].code
    assert not at.info
    assert not again()
    assert not at.exception
    at = opened("exercise", "Port it")
    assert code_in(at, number)["value"] == EXERCISES["Port it"].code


def test_what_a_script_does_already_is_ticked_off():
    at = opened("exercise", "Write it")
    ticks = [texts(at.markdown).count(":material/check_circle:")]
    for code in ("mine", EXERCISES["Write it"].solution):
        check(at, "Write it", code)
        ticks.append(texts(at.markdown).count(":material/check_circle:"))
    assert ticks == [0, 1, 0]  # the stand-in for the judge ticks none in the end


def test_where_no_code_is_run_a_script_is_written_elsewhere(monkeypatch):
    monkeypatch.setattr(practice, "mode", lambda _: Mode("off", "The reason why."))
    at = opened("exercise", "Write it")
    codes = [code.value for code in at.code]
    assert EXERCISES["Write it"].solution in codes  # to write on one's own machine
    assert "turn_Write it_lines" not in {pills.key for pills in at.pills}


@pytest.mark.parametrize("title", ["Model", "Scale", "Port it"])
def test_where_no_code_is_run_the_lines_to_change_are_asked_for(
    title, monkeypatch, store
):
    monkeypatch.setattr(practice, "mode", lambda _: Mode("off", "The reason why."))
    exercise = EXERCISES[title]
    at = opened("exercise", title)
    assert "The reason why." in texts(at.caption)
    number = [pills.key for pills in at.pills].index(f"turn_{title}_lines")

    def answer(lines: list[int]) -> None:
        at.pills[number].set_value(lines)
        at.button[number].click().run()
        assert not at.exception

    needless = next(
        line
        for line in range(1, 99)
        if not any(line in at for at in (*exercise.places.values(), exercise.also))
    )
    at.button[number].click().run()
    assert at.warning, "an answer without a line"
    assert not store.answers.of("me")
    for _ in range(2):  # the same answer again is no other try
        answer([needless])
        assert store.answers.of("me")[f"turn_{title}_lines"]["tries"] == 1
    assert f"Line {needless} can stay" in texts(at.info)
    praise = exercise.right.removeprefix("Right: ")[1:]  # it begins another sentence
    assert praise not in page_text(at)
    assert "tries" in texts(at.caption)
    answer([min(at) for at in exercise.places.values()])
    assert praise in texts(at.success)
    again = opened("exercise", title)
    assert praise in texts(again.success)
    ways = len(at.expander)
    answer([needless])
    assert practice.has_solved(title, store.answers.of("me"))
    assert not re.search(r"\btr(y|ies)\b", texts(at.caption))
    assert len(at.expander) == ways  # the solution stays


def test_exercises_or_questions_that_cannot_be_read_are_a_sentence(monkeypatch):
    monkeypatch.setattr(practice, "BROKEN", "content/exercises.toml can't be read: why")
    monkeypatch.setattr(course, "BROKEN", "question 1 of Device has no 'key'.")
    error = texts(opened("exercise", "Model").error)
    assert "content/exercises.toml can't be read: why" in error
    assert "question 1 of Device has no 'key'" in texts(opened().error)


def test_the_first_try_counts_and_every_try_explains_itself(store):
    at = opened()
    (radio,) = at.radio
    assert (radio.label, radio.value) == (FIRST.text, None)
    assert radio.options == FIRST.shuffled("me")
    assert not [reply for reply in FIRST.answers.values() if reply in page_text(at)]
    assert "**0 of" not in page_text(at)
    wrong = next(answer for answer in FIRST.answers if answer != FIRST.right)
    for chosen in (wrong, FIRST.right):
        at.radio[0].set_value(chosen).run()
        assert FIRST.answers[chosen] in page_text(at)
    assert re.search(r"\*\*0 of 1\*\*.+\b3\b", page_text(at))  # 3 are left
    assert store.answers.of("me") == {FIRST.key: [wrong, FIRST.right]}
    at = opened()
    assert at.radio[0].label == LATER[0].text  # the first is done
    assert "**0 of 1**" in page_text(at)


def test_the_way_leads_from_question_to_question():
    at = opened()
    for question in (FIRST, *LATER):
        assert at.radio[0].label == question.text
        at.radio[0].set_value(question.right).run()
        for button in at.button:
            if button.label == "Next question":
                button.click().run()
    assert "Next question" not in [button.label for button in at.button]
    assert re.search(r"\*\*4 of 4\*\*[^\d\n]+$", page_text(at), re.MULTILINE)
    at.segmented_control[0].set_value(0).run()
    assert at.radio[0].label == FIRST.text
    assert at.radio[0].value == FIRST.right


def test_whoever_has_answered_sees_what_the_code_comes_to(monkeypatch):
    def here(_, address, request, how):
        assert (address, how) == ("core.jobs.code:run", "own")
        assert request.text == question.code
        return {"failure": None, "notes": []}, "what it printed"

    monkeypatch.setattr(practice, "run_code", here)
    at = opened()
    number, question = next(
        (i, q) for i, q in enumerate(LESSONS[0].questions) if q.code
    )
    at.segmented_control[0].set_value(number).run()
    assert question.code in [element.value for element in at.code]
    run = f"run_{question.key}"
    assert run not in [button.key for button in at.button]
    at.radio[0].set_value(question.right).run()
    at.button(key=run).click().run()
    assert "what it printed" in [element.value for element in at.code]


def test_a_question_comes_again_two_pages_later(store):
    assert not opened("again", "Train").radio
    wrong = next(answer for answer in FIRST.answers if answer != FIRST.right)
    store.answers.keep("me", FIRST.key, [wrong, FIRST.right])
    at = opened("again", "Train")
    (radio,) = at.radio
    assert (radio.label, radio.value) == (FIRST.text, None)
    radio.set_value(FIRST.right).run()
    assert FIRST.answers[FIRST.right] in page_text(at)
    assert store.answers.of("me")[FIRST.again_key] == {"Train": [FIRST.right]}
    assert opened("again", "Train").radio[0].value == FIRST.right
    assert not opened("again", "Mistakes").radio


def test_the_course_ends_with_ten_mixed_questions(store):
    questions = [q for lesson in LESSONS for q in lesson.questions]
    at = opened("last")
    assert not at.button
    for question in questions:
        store.answers.keep("me", question.key, [question.right])
    wrong = next(answer for answer in FIRST.answers if answer != FIRST.right)
    store.answers.keep("me", FIRST.key, [wrong, FIRST.right])
    at = opened("last")
    at.button(key="ask_last").click().run()
    by_text = {question.text: question for question in questions}
    asked = []
    while "ask_last" not in [button.key for button in at.button]:
        (radio,) = at.radio
        asked.append(by_text[radio.label])
        answer = wrong if asked[-1] is FIRST else asked[-1].right
        radio.set_value(answer).run()
        if answer == wrong:
            at.radio[0].set_value(FIRST.right).run()
        for button in at.button:
            if button.label == "Next question":
                button.click().run()
    assert len(asked) == len({q.key for q in asked}) == course.LAST
    assert FIRST in asked
    assert "9 of the 10" in page_text(at)
    at.button(key="ask_last").click().run()
    assert at.radio[0].value is None
