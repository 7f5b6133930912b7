import re

import pytest

from core.ui import course
from core.ui.course import HOME, LESSONS, PAGES, of_address, page
from tests.app.pages.walk import open_page
from tests.process import ROOT


def test_every_page_is_in_the_course() -> None:
    numbered = {int(path.name.split("_")[0]): path for path in ROOT.glob("pages/*.py")}
    files = [f"pages/{numbered[number].name}" for number in sorted(numbered)]
    assert files == [page.file for page in PAGES if page is not HOME]
    assert [page(entry.title) for entry in PAGES] == list(PAGES)
    assert (ROOT / HOME.file).exists()


def test_every_lesson_ends_with_pages_of_pytorch() -> None:
    addresses = [address for lesson in LESSONS for address in lesson.read.values()]
    assert all(2 <= len(lesson.read) <= 5 for lesson in LESSONS)
    assert len(set(addresses)) == len(addresses)
    for address in addresses:
        assert re.fullmatch(
            r"https://docs\.pytorch\.org/(docs/stable|tutorials)/[\w./]+\.html(#[\w.]+)?",
            address,
        )


def test_a_job_belongs_to_the_lesson_that_starts_it() -> None:
    assert of_address("core.lessons.speed.copies:measure") == page("Speed")
    assert of_address("core.training:run") == page("Train")
    assert of_address("core.devices:describe") is None


def answers_of(*lessons: int, right: bool = True) -> dict[str, list[str]]:
    """Answers to all questions of the lessons with these numbers, from 0."""
    questions = [
        question for number in lessons for question in LESSONS[number].questions
    ]
    return {
        q.key: [q.right if right else next(a for a in q.answers if a != q.right)]
        for q in questions
    }


def test_a_question_counts_if_it_is_right_at_first_or_when_it_comes_again() -> None:
    lesson = LESSONS[0]
    question = lesson.questions[0]
    answers = answers_of(0)
    assert lesson.is_done(answers)
    wrong = next(answer for answer in question.answers if answer != question.right)
    answers[question.key] = [wrong, question.right]
    assert lesson.is_answered(answers)
    assert not lesson.is_done(answers)
    assert course.unearned(answers) == [question]
    answers |= {question.again_key: {"Train": [wrong, question.right]}}
    assert not lesson.is_done(answers)
    answers |= {question.again_key: {"Train": [wrong], "Mistakes": [question.right]}}
    assert lesson.is_done(answers)


def test_a_page_begins_with_a_question_from_at_least_two_pages_ago() -> None:
    first, second, third, fourth = LESSONS[:4]
    assert course.again_on(third, {}) is None
    answers = answers_of(0, 1)
    assert course.again_on(first, answers) is course.again_on(second, answers) is None
    assert course.again_on(third, answers) == first.questions[0]
    assert course.again_on(fourth, answers) == second.questions[0]
    wrong = first.questions[-1]
    answers |= {wrong.key: answers_of(0, right=False)[wrong.key]}
    assert course.again_on(third, answers) == wrong
    assert course.again_on(fourth, answers) == wrong
    answers |= {wrong.again_key: {third.title: [wrong.right]}}
    assert course.again_on(third, answers) == wrong  # the same after an answer
    assert course.again_on(fourth, answers) == second.questions[0]


def test_the_last_questions_are_those_that_are_not_earned_yet_and_others() -> None:
    answers = answers_of(0, 1, 2, 3) | answers_of(1, right=False)
    last = course.last_questions(answers, "me 1")
    assert len(last) == len({q.key for q in last}) == course.LAST
    keys = {question.key for question in course.unearned(answers)}
    assert keys <= {question.key for question in last}
    assert last == course.last_questions(answers, "me 1")
    assert last != course.last_questions(answers, "me 2")


@pytest.mark.usefixtures("engine")
def test_a_link_is_what_streamlit_would_make_of_the_file(monkeypatch):
    drawn = [link.proto for link in open_page("pages/3_Train.py").get("page_link")]
    monkeypatch.setattr(course, "_streamlit_page", str)
    by_file = [link.proto for link in open_page("pages/3_Train.py").get("page_link")]
    assert drawn == by_file
    titles = {page.title for page in PAGES}
    assert {link.page for link in drawn} <= titles | {""}
    assert len({link.page_script_hash for link in drawn}) > 10
