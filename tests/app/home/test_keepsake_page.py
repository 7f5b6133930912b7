from datetime import date
from types import SimpleNamespace

import pytest

from core.home import keepsake_page as keepsake
from core.jobs.job import Job
from core.lessons.compare import race_page
from core.lessons.compare.race_page import RaceLab
from core.ui import format, last_measurement
from core.ui.course import LESSONS
from core.ui.spoilers import FIRST_RUN
from tests.app import samples
from tests.app.store.made_up import summary

RACE = race_page.RaceLab.address
ARGUMENTS = (samples.RACE.config, samples.PAIR, 10, 3)


@pytest.fixture
def answers(monkeypatch) -> dict:
    """What the visitor has answered; the race of this machine is somebody else's."""
    job = Job("id", RACE, ARGUMENTS, "train", "ada", "finished", value=samples.RACE)
    monkeypatch.setattr(last_measurement, "newest", {RACE: job}.get)
    monkeypatch.setattr(keepsake.runs, "stored_runs", lambda *_, **__: [])
    here = SimpleNamespace(machine=lambda: samples.machine("CUDA"))
    monkeypatch.setattr(keepsake, "engine", lambda: here)
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


def test_it_counts_the_questions_and_names_the_lessons_that_are_done(answers):
    lesson, other = LESSONS[:2]
    answers |= {question.key: [question.right] for question in lesson.questions}
    page, count = keepsake.page("bob", answers), len(lesson.questions)
    assert f"{count} of {sum(len(lesson.questions) for lesson in LESSONS)}" in page
    assert f"Lessons done: {lesson.title}." in page
    assert other.title not in page
