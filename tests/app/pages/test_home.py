import base64
from unittest.mock import Mock
from urllib.parse import unquote_plus

import numpy as np
import pytest

from core.classroom.rules import Rules
from core.config import RunConfig
from core.home import first_run_page as now
from core.jobs import measurements
from core.jobs.engine import Engine
from core.jobs.measurements import recorded
from core.results import WALL
from core.ui import answers, charts, format, guess, image_wall, job_panel, server
from core.ui.course import CLASS, LESSONS
from tests.app import samples
from tests.app.jobs.follow import LONG
from tests.app.pages.walk import (
    TEACHER,
    component_data,
    finish,
    open_page,
    status,
    texts,
    wait,
)
from tests.app.store.made_up import finished, queue
from tests.figures import figures
from to_device.errors import ExplainedError


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    short = RunConfig(task="sprites", epochs=2, batch_size=500)
    monkeypatch.setattr(now, "quick", lambda *_: short)


@pytest.fixture
def newcomer(monkeypatch, somebody) -> str:
    """A visitor who has answered nothing yet."""
    own_answers: dict = {}
    monkeypatch.setattr(answers, "of_visitor", lambda: own_answers)
    return somebody


def shown_on_wall(at) -> dict:
    (board,) = (data for data in component_data(at) if "said" in data)
    return board


def told_first(at, before: str) -> str:
    """What Home tells first, in the line that ends with what it told before."""
    text = status(at.run())
    assert text.endswith(before)
    return text.removesuffix(before)


def test_train_now_races_and_ends_with_what_the_model_says(engine, newcomer):
    before = engine.submit(now.runs.RUN, LONG, owner="before")
    wait(engine, before, lambda job: job.progress.started)
    at = open_page("home.py")
    assert at.button(key="train_now").label == "Train now"
    assert now.words("busy") in texts(at.markdown)
    at.radio(key="home_race_guess").set_value(now.SAME).run()
    at.button(key="train_now").click().run()
    assert not at.get("vega_lite_chart")  # without a step, there is nothing to draw
    first, second = engine.jobs(now.runs.RUN, newcomer)
    between = engine.submit(now.runs.RUN, LONG, owner="between")
    engine.cancel(before)
    finish(at, engine, first.id)
    wait(engine, between, lambda job: job.progress.started)
    at.run()
    usual = engine.job(first.id).value
    assert f"{usual.test_accuracy:.2%}" in texts(at.markdown)
    assert f'"{charts.AXES["seconds"]}"' in at.get("vega_lite_chart")[0].proto.spec
    assert figures(status(at))[0] == "1"  # the place in the queue
    last = usual.history[-1]
    assert tuple(shown_on_wall(at)["said"]) == last.wall
    engine.cancel(between)
    finish(at, engine, second.id)
    job = engine.job(second.id)
    text = status(at)
    assert f"{job.value.test_accuracy:.2%}" in text
    assert [*now.candidates(None, 0)][1] in text  # the run's name
    fitting = ((), (now.SAME,), (now.SAME, ""))  # it was wrong, right, or may be
    worths = [guess.worth(now.SAME, fits) for fits in fitting]
    assert any(worth in texts(at.markdown) for worth in worths)
    board, last = shown_on_wall(at), job.value.history[-1]
    assert tuple(board["said"]) == last.wall
    percent = base64.b64decode(board["percent"])
    for place in range(WALL):
        shares = percent[10 * place : 10 * place + 10]
        assert shares[last.wall[place]] == max(shares)
        assert 95 <= sum(shares) <= 105
    at.button(key="next_lesson").click().run()
    assert not at.exception
    assert at.title[0].value == "Device"
    at.switch_page("home.py").run()
    at.button(key="train_now").click().run()  # no second race
    finish(at, engine, engine.jobs(now.runs.RUN, newcomer)[-1].id)
    assert len(engine.jobs(now.runs.RUN, newcomer)) == 3


@pytest.mark.parametrize("backends", [("CPU",), ("CUDA", "CPU")])
def test_the_guess_and_the_sentence_name_all_runs_of_the_race(
    engine, newcomer, monkeypatch, backends
):
    here = samples.machine(*backends)
    monkeypatch.setattr(Engine, "machine", lambda _: here)
    at = open_page("home.py")
    *names, same = at.radio(key="home_race_guess").options
    assert same == now.SAME
    begin = now.words("race.takes").partition("{")[0]
    (sentence,) = (m.value for m in at.markdown if begin in m.value)
    at.button(key="train_now").click().run()
    now.cancel()
    configs = [job.arguments[0] for job in engine.jobs(now.runs.RUN, newcomer)]
    assert configs == list(now.candidates(here, 0).values())
    assert len(names) == len(configs) == sentence.count("setting") == 1 + len(backends)
    assert ("cpu" in {config.device for config in configs}) is ("CUDA" in backends)


@pytest.mark.usefixtures("newcomer")
@pytest.mark.parametrize("backends", [("CPU",), ("CUDA", "CPU")])
def test_a_machine_without_a_gpu_shows_what_one_recorded(monkeypatch, backends):
    monkeypatch.setattr(Engine, "machine", lambda _: samples.machine(*backends))
    monkeypatch.setattr(measurements, "recorded", recorded)
    at = open_page("home.py")
    shown = [label for label in (c.value for c in at.caption) if "Recorded on" in label]
    assert len(shown) == ("CUDA" not in backends)


def test_a_drawing_is_answered_once_by_a_model_that_is_finished(engine, newcomer):
    run = engine.submit(
        now.runs.RUN, RunConfig(task="sprites", epochs=1), owner=newcomer
    )
    wait(engine, run)
    at = open_page("home.py")
    assert shown_on_wall(at)["sketch"] == {}
    ink = np.zeros((56, 56), np.uint8)
    ink[10:50, 20:36] = 255
    for n, drawn in enumerate((ink.tobytes(), b"not a square"), 1):
        sent = {"n": n, "ink": base64.b64encode(drawn).decode()}
        at.session_state["wall"] = {"drawing": sent}
        at.run()
        answer = shown_on_wall(at)["sketch"]
        assert answer["n"] == n
        assert not at.exception
        if n == 1:
            assert len(answer["percent"]) == 10
            assert len(base64.b64decode(answer["pixels"])) == 28 * 28
    assert "percent" not in answer
    assert answer["problem"]


def test_cancel_ends_the_whole_race(engine, newcomer, monkeypatch):
    monkeypatch.setattr(now, "quick", lambda *_: LONG)
    at = open_page("home.py")
    at.button(key="train_now").click().run()
    now.start()
    first, second = engine.jobs(now.runs.RUN, newcomer)
    wait(engine, first.id, lambda job: job.progress.losses)
    at.run()
    assert "train_now" not in {button.key for button in at.button}
    at.button(key="cancel_run").click().run()
    finish(at, engine, first.id)
    assert engine.job(second.id).status == "cancelled"
    steps = engine.job(first.id).progress.started.steps
    assert f"{steps:,}" in figures(status(at))
    assert at.button(key="train_now").label == "Train again"


@pytest.mark.usefixtures("newcomer")
def test_why_a_run_is_refused_stays_until_one_goes_on(engine, monkeypatch):
    refusal = Mock(side_effect=ExplainedError("It would take too long."))
    monkeypatch.setattr(now, "quick", lambda *_: LONG)
    at = open_page("home.py")
    with monkeypatch.context() as refused:
        refused.setattr(now.runs, "start", refusal)
        at.button(key="train_now").click().run()
    for _ in range(2):  # as the page does by itself
        at.run()
        assert "It would take too long." in texts(at.warning)
    run_id = now.runs.start(LONG)  # on another page
    at.run()
    assert not at.warning
    engine.cancel(run_id)
    wait(engine, run_id)
    at.run()
    assert not at.warning


def test_a_run_with_other_settings_is_told_as_such_and_as_the_earlier_one(
    engine, newcomer, missing_device
):
    other = RunConfig(task="sprites", epochs=1, batch_size=400)
    wait(engine, engine.submit(now.runs.RUN, other, owner=newcomer))
    at = open_page("home.py")
    assert {"1", "400"} <= {*figures(status(at))}
    canceled = engine.submit(now.runs.RUN, LONG, owner=newcomer)
    wait(engine, canceled, lambda job: job.progress.started)
    engine.cancel(canceled)
    wait(engine, canceled)
    before = status(at)
    assert format.ENDINGS["cancelled"] in told_first(at, before)
    impossible = RunConfig(task="sprites", device=missing_device)
    wait(engine, engine.submit(now.runs.RUN, impossible, owner=newcomer))
    assert format.ENDINGS["failed"] in told_first(at, before)


@pytest.mark.parametrize("ended", ["interrupted", "failed", "cancelled"])
def test_home_says_how_the_newest_run_ended_before_a_restart(newcomer, ended):
    """Beside the finished run before it, if it shows that."""
    store, why = server.store(), "The app stopped."
    finished(store, f"before {ended}", newcomer)
    before = status(open_page("home.py"))
    queue(store, f"newest {ended}", newcomer, RunConfig(task="sprites"))
    store.writer.wait(store.runs.end(f"newest {ended}", ended, message=why))
    at = open_page("home.py")
    if ended == "failed":
        assert why in status(at) + texts(at.error)
    else:
        assert format.ENDINGS[ended] in told_first(at, before)
    assert at.button(key="train_now").label == "Train again"
    assert store.runs.delete([f"before {ended}"], newcomer) == 1
    at = open_page("home.py")
    assert why in status(at) + texts(at.error)
    links = [link.proto.query_string for link in at.get("page_link")]
    assert any(f"newest {ended}" in unquote_plus(it) for it in links) == (
        ended == "interrupted"
    )


def test_a_class_guesses_and_sees_no_result_before_its_own(engine, room, newcomer):
    other = engine.submit(now.runs.RUN, LONG)
    wait(engine, other, lambda job: job.progress.losses)
    assert now.words("idle") in texts(open_page("home.py").markdown)
    opened = room.create(TEACHER, "Class", 10, Rules())
    room.start(TEACHER, opened.id)
    room.join(opened.code, server.visitor())
    at = open_page("home.py")
    assert now.words("idle") not in texts(at.markdown)
    assert "Best accuracy" not in {metric.label for metric in at.metric}
    assert now.words("takes") not in texts(at.markdown)
    engine.cancel(other)
    room.pause(TEACHER)
    at.run()
    assert now.words("paused") in texts(at.markdown)
    at.button(key="train_now").click().run()  # too early, and without a guess
    at.button(key="cancel_run").click().run()
    assert at.radio(key="first_run_guess").value is None  # it is still asked
    at.button(key="train_now").click().run()
    canceled, own = engine.jobs(now.runs.RUN, newcomer)
    assert canceled.status == "cancelled"
    assert job_panel.words("queue.paused") in status(at)
    assert any(link.proto.page.endswith(CLASS.title) for link in at.get("page_link"))
    at.radio(key="first_run_guess").set_value("95 or more").run()
    assert "95 or more" in status(at)
    assert "Best accuracy" not in {metric.label for metric in at.metric}
    room.pause(TEACHER, paused=False)
    finish(at, engine, own.id)
    assert guess.worth("95 or more", ()) in status(at)
    wait(engine, other)


@pytest.mark.usefixtures("newcomer")
def test_without_workers_no_images_are_shown(monkeypatch):
    monkeypatch.setattr(Engine, "machine", lambda _: None)
    at = open_page("home.py")
    assert at.button(key="train_now").disabled
    assert "loading torch" in texts(at.caption)
    assert shown_on_wall(at)["labels"] == []
    monkeypatch.setattr(Engine, "problem", "Nobody answers. Start them.")
    assert "Nobody answers" in texts(open_page("home.py").error)


@pytest.mark.usefixtures("newcomer")
def test_pictures_that_do_not_come_are_a_sentence(monkeypatch):
    image_wall.images.cache_clear()
    busy = Mock(side_effect=ExplainedError("The lab is busy."))
    monkeypatch.setattr(image_wall, "ask", busy)
    at = open_page("home.py")
    assert "The lab is busy" in texts(at.error)
    image_wall.images.cache_clear()


def test_every_lesson_has_a_card():
    at = open_page("home.py")
    text = texts(at.markdown)
    for lesson in LESSONS:
        assert lesson.asks in text
        assert f"{lesson.minutes} min" in text
        assert lesson.minutes > 0
    first, second = LESSONS[:2]
    questions = [*first.questions[:2], *second.questions]
    at.session_state["answers"] = {q.key: [q.right] for q in questions}
    text = texts(at.run().markdown)
    assert f"2 of {len(first.questions)} answered" in text
    assert f"1 of {sum(not lesson.further for lesson in LESSONS)} lessons done" in text
