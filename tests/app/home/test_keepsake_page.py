from datetime import date
from types import SimpleNamespace

import pytest

from core.home import keepsake_page as keepsake
from core.jobs.job import Job
from core.lessons.compare import race_page
from core.lessons.compare.race_page import RaceLab
from core.lessons.speed import climb_result, ladder_page
from core.ui import format, lab, last_measurement
from core.ui.course import LESSONS
from core.ui.practice import EXERCISES, answer_keys
from core.ui.spoilers import FIRST_RUN
from tests.app import samples
from tests.app.store.made_up import summary

RACE = race_page.RaceLab.address
ARGUMENTS = (samples.RACE.config, samples.PAIR, 10, 3)


@pytest.fixture
def answers(monkeypatch) -> dict:
    """What the visitor has answered; somebody else raced and climbed here."""
    ladder, fields = ladder_page.PANEL.address, ("train", "ada", "finished")
    jobs = {
        RACE: Job("id", RACE, ARGUMENTS, *fields, value=samples.RACE),
        ladder: Job("id", ladder, (), *fields, value=samples.CLIMBED),
    }
    monkeypatch.setattr(last_measurement, "newest", jobs.get)
    monkeypatch.setattr(keepsake.runs, "stored_runs", lambda *_, **__: [])
    here = SimpleNamespace(machine=lambda: samples.machine("CUDA"))
    for module in (keepsake, lab):
        monkeypatch.setattr(module, "engine", lambda: here)
    return {}


def test_it_has_what_was_guessed_and_what_was_found(answers):
    assert "Testing card" not in keepsake.page(
        "bob", answers
    )  # measured by another, not guessed
    question = RaceLab().asks(samples.machine("CUDA"), ARGUMENTS)
    answers[question.key] = question.options[0]
    page = keepsake.page("bob", answers)
    assert f"You guessed: {question.say(question.options[0])}" in page
    assert "Testing card" in page
    assert "**" not in page
    assert f"Measured {format.day(date.today())}" in page  # since it's read later


def test_it_has_the_first_run_beside_its_guess(answers, monkeypatch):
    shares = (None, 0.91, 0.83)  # the newest run first; one is on numbers
    rows = [summary(accuracy=share, device_name="Testing card") for share in shares]
    monkeypatch.setattr(keepsake.runs, "stored_runs", lambda *_, **__: rows)
    assert "83 of 100" not in keepsake.page("bob", answers)
    answers[FIRST_RUN] = "80 to 94"
    page = keepsake.page("bob", answers)
    assert "80 to 94" in page
    assert "83 of 100" in page


def test_it_has_the_ladder_once_no_rung_is_hidden(answers):
    title, headline = "Speed: The ladder", climb_result.verdict(samples.CLIMBED)
    first, *others = (
        f"guess_{result.rung}" for result in samples.CLIMBED.results if result.base
    )
    answers |= dict.fromkeys(others, climb_result.GUESSES[0])
    assert title not in keepsake.page("bob", answers)
    answers[first] = climb_result.GUESSES[0]
    page = keepsake.page("bob", answers)
    assert title in page
    assert headline.partition("**")[2].partition("**")[0] in page
    shown = {ladder_page.rungs_page.SHOW_ALL: True}
    assert title in keepsake.page("ada", shown)  # who climbed
    assert title not in keepsake.page("bob", shown)


def test_it_is_in_the_order_of_the_course(answers):
    answers[RaceLab().asks(samples.machine("CUDA"), ARGUMENTS).key] = "none of these"
    answers |= {
        f"guess_{rung.name}": climb_result.GUESSES[0] for rung in climb_result.RUNGS
    }
    page = keepsake.page("bob", answers)
    assert 0 < page.index("Compare: ") < page.index("Speed: ")


def test_it_names_the_exercises_that_are_solved(answers):
    assert "Exercises solved" not in keepsake.page("bob", answers)
    by_code, by_lines, tried = [*EXERCISES][:3]
    picked = [min(lines) for lines in EXERCISES[by_lines].places.values()]
    answers |= {
        answer_keys(by_code).verdict: {"solved": True},
        answer_keys(by_lines).lines: {"tries": 1, "picked": picked},
        answer_keys(tried).verdict: {"solved": False},
    }
    page = keepsake.page("bob", answers)
    assert f"Exercises solved: {by_code}, {by_lines}." in page


def test_it_counts_the_questions_and_names_the_lessons_that_are_done(answers):
    lesson, other = LESSONS[:2]
    answers |= {question.key: [question.right] for question in lesson.questions}
    page, count = keepsake.page("bob", answers), len(lesson.questions)
    assert f"{count} of {sum(len(lesson.questions) for lesson in LESSONS)}" in page
    assert f"Lessons done: {lesson.title}." in page
    assert other.title not in page
