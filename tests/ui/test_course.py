"""core.ui.course: the lessons of course.toml."""

import pytest

from core.ui.course import HOME, LESSONS, RUNS, Lesson, after, of_address, page
from tests.process import ROOT


def test_every_page_but_one_is_a_lesson() -> None:
    """In the order of their numbers; each is found by its title."""
    files = sorted(path.name for path in ROOT.glob("pages/*.py"))
    pages = [*LESSONS, RUNS]
    assert [f"pages/{name}" for name in files] == [each.file for each in pages]
    assert [page(each.title) for each in pages] == pages
    assert (ROOT / HOME.file).exists()


@pytest.mark.parametrize("each", LESSONS, ids=lambda each: each.title)
def test_a_question_has_one_right_answer_among_several(each: Lesson) -> None:
    """And something to say to whoever chose another."""
    assert each.question is not None
    assert each.question.right in each.question.answers
    assert len(each.question.answers) >= 3
    assert all(each.question.answers.values())


def test_a_lesson_is_done_by_the_right_answer() -> None:
    """To its own question, whatever else was answered."""
    first, second = LESSONS[:2]
    assert first.question is not None
    wrong = next(
        each for each in first.question.answers if each != first.question.right
    )
    assert not first.is_done({})
    assert not first.is_done({first.question.key: wrong})
    right = {first.question.key: first.question.right}
    assert first.is_done(right)
    assert not second.is_done(right)


def test_a_job_belongs_to_the_lesson_that_starts_it() -> None:
    """By the package of the function that does it."""
    assert of_address("core.speed.copies:measure") == page("Speed")
    assert of_address("core.training:run") == page("Train")
    assert of_address("core.machine.facts:probe") is None


def test_the_way_on_leads_through_all_lessons() -> None:
    """From the first to the last, which has none after it."""
    way: list[Lesson | None] = [LESSONS[0]]
    while way[-1] is not None:
        way.append(after(way[-1]))
    assert way == [*LESSONS, None]
