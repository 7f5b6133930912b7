"""Home: train now, the wall, one picture, and what is there before and after."""

import re
import uuid

import pytest

from core.config import RunConfig
from core.errors import ExplainedError
from core.home import first_run_page as now
from core.jobs.engine import Engine
from core.results import WALL
from core.ui import server, wall
from core.ui.course import LESSONS
from tests.pages.walk import CURVE, finish, open_page, status, texts, wait


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """What Train now starts, made short."""
    short = RunConfig(task="sprites", epochs=2, batch_size=500)
    monkeypatch.setattr(now, "quick", lambda *_: short)


@pytest.fixture
def somebody(monkeypatch) -> str:
    """The visitor of this test, who has no run of an earlier one."""
    who = uuid.uuid4().hex
    for module in (server, now, now.runs, now.job_panel, now.progress):
        monkeypatch.setattr(module, "visitor", lambda: who)
    return who


def wrong_of(job) -> int:
    """How many of the fifty the model of this job gets wrong."""
    labels = wall.images("sprites")[1]
    return sum(a != b for a, b in zip(job.value.history[-1].wall, labels, strict=True))


def test_train_now_ends_with_a_wall_and_a_picture(engine, somebody):
    at = open_page("home.py")
    at.button(key="train_now").click().run()
    (job,) = engine.jobs(now.runs.RUN, somebody)
    finish(at, engine, job.id)
    job = engine.job(job.id)
    assert f"{job.value.test_accuracy:.2%} of the test images are classified" in status(
        at
    )
    assert len(at.get("vega_lite_chart")) == 2  # the loss, and a picture's answer
    said = texts(at.markdown)
    assert f"**{wrong_of(job)} of these {WALL}** wrong" in said
    assert "What does your model think this is?" in said
    first = at.session_state.picture_turn
    at.button(key="another_picture").click().run()
    assert at.session_state.picture_turn == first + 1
    assert re.search(r"\*\*: (right|wrong)", texts(at.markdown))
    assert not at.error


def test_a_second_click_starts_no_second_run(engine, somebody, monkeypatch):
    long = RunConfig(task="sprites", epochs=50)
    monkeypatch.setattr(now, "quick", lambda *_: long)
    at = open_page("home.py")
    at.button(key="train_now").click().run()
    now.start()
    (job,) = engine.jobs(now.runs.RUN, somebody)
    assert "train_now" not in {each.key for each in at.button}
    at.button(key="cancel_run").click().run()
    finish(at, engine, job.id)
    assert "Cancelled" in status(at)
    assert at.button(key="train_now").label == "Train again"


@pytest.mark.usefixtures("somebody")
def test_somebody_elses_run_is_watched(engine):
    other = engine.submit(
        now.runs.RUN, RunConfig(task="sprites", epochs=50), owner="another"
    )
    wait(engine, other, lambda job: job.progress.losses)
    at = open_page("home.py")
    assert "Somebody in this course is training this" in texts(at.markdown)
    assert at.button(key="train_now").label == "Train now"
    engine.cancel(other)
    wait(engine, other)


def test_a_run_that_has_no_wall_goes_on_elsewhere(engine, somebody):
    run = engine.submit(now.runs.RUN, CURVE, owner=somebody)
    at = open_page("home.py")
    assert at.button(key="train_now").disabled or engine.job(run).ended
    wait(engine, run)


@pytest.mark.usefixtures("somebody")
def test_without_workers_the_wall_is_empty(monkeypatch):
    monkeypatch.setattr(Engine, "machine", lambda _: None)
    at = open_page("home.py")
    assert at.button(key="train_now").disabled
    assert "loading torch" in texts(at.caption)
    assert len(at.get("image")) == 1
    monkeypatch.setattr(Engine, "problem", "Nobody answers. Start them.")
    assert "Nobody answers" in texts(open_page("home.py").error)


@pytest.mark.usefixtures("somebody")
def test_pictures_that_do_not_come_are_a_sentence(monkeypatch):

    def busy(*_):
        raise ExplainedError("The lab is busy.")

    wall.images.clear()
    monkeypatch.setattr(wall, "ask", busy)
    at = open_page("home.py")
    assert "The lab is busy" in texts(at.error)
    wall.images.clear()


def test_every_lesson_has_a_card():
    at = open_page("home.py")
    said = texts(at.markdown)
    for lesson in LESSONS:
        assert lesson.asks in said
        assert f"{lesson.minutes} min" in said
        assert lesson.minutes > 0
    first, second = LESSONS[:2]
    asked = [*first.questions[:2], *second.questions]
    at.session_state["answers"] = {each.key: [each.right] for each in asked}
    said = texts(at.run().markdown)
    assert f"2 of {len(first.questions)} answered" in said
    assert f"1 of {sum(not each.further for each in LESSONS)} lessons done" in said


def test_pictures_are_right_and_wrong_in_turn():
    order = now.order(frozenset({3, 7}))
    assert order[:5] == [0, 3, 1, 7, 2]
    assert sorted(order) == list(range(WALL))
