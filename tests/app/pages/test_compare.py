import json
import re
from dataclasses import replace
from itertools import zip_longest

import pytest
from starlette.applications import Starlette
from streamlit.testing.v1 import AppTest

from core.classroom.rules import Rules
from core.lessons.compare import your_gpu_work_page as work
from core.lessons.compare.candidates import candidates
from core.lessons.compare.crossover_result import Cell
from core.lessons.compare.your_gpu_page import (
    COMPONENT,
    RESULT,
    RUN,
    SHARED,
    SOURCE,
    YourGpu,
)
from core.lessons.compare.your_gpu_work_page import WORK, prepared
from core.measure.speedup import BUSY
from core.store.cache import Cache
from core.ui import server
from tests.app.pages.walk import (
    HOSTILE,
    TEACHER,
    finish,
    open_page,
    open_tab,
    outside_code,
    press,
    show_lab,
    texts,
    wait,
)
from tests.app.samples import BROWSER_GPU, RACE
from tests.app.ui.client import Client


def test_a_race_ends_with_a_verdict_and_files(engine):
    at = open_page("pages/7_Compare.py")
    # The machine that tests run on is busy: one thread against itself.
    for name in ("first_contender", "second_contender"):
        box = at.selectbox(key=name)
        box.set_value(next(o for o in compared() if o.threads == 1))
    at.selectbox(key="race_task").set_value("sprites")
    at.number_input(key="race_steps_ann").set_value(20)
    at.number_input(key="race_repeats").set_value(3).run()
    at = press(at, engine, "compare", "core.lessons.compare.race:race")
    assert at.button(key="show_race_guess")
    assert not at.tabs[0].get("download_button")
    at.radio(key="race_guess").set_value("About equally fast").run()
    tab = at.tabs[0]
    assert len(tab.info) + len(tab.success) == 1
    assert len(tab.get("vega_lite_chart")) == 3
    assert "n = 3" in texts(at.caption)
    labels = [button.proto.label for button in tab.get("download_button")]
    assert labels == ["CSV", "JSON"]


def compared():
    """The candidates on the page."""
    from core.ui.server import engine

    return candidates(engine().machine())


def test_an_impossible_race_is_not_started():
    at = open_page("pages/7_Compare.py")
    at.number_input(key="race_repeats").set_value(1).run()
    assert len(at.warning) == 1
    assert at.button(key="compare").disabled
    at.number_input(key="race_repeats").set_value(3).run()
    assert not at.button(key="compare").disabled


def test_the_learner_guesses_before_the_readings_show(engine):
    at = open_page("pages/7_Compare.py", tab="The stopwatch")
    at.radio(key="timing_guess").set_value("Less than twice as long").run()
    at = press(at, engine, "time_it", "core.lessons.compare.timing_pitfalls:measure")
    assert len(at.tabs[1].info) + len(at.tabs[1].success) == 1
    assert len(at.tabs[1].get("vega_lite_chart")) == 1


def test_a_step_is_taken_apart_and_the_map_measured(engine):
    at = open_page("pages/7_Compare.py", tab="The profile")
    at.radio(key="profile_guess").set_value("load").run()
    at = press(at, engine, "take_apart", "core.lessons.compare.step_profile:measure")
    assert "trace_gz" in {button.key for button in at.get("download_button")}
    open_tab(at, "The map")
    alone = next(pick for pick in compared() if pick.threads == 1)
    at.selectbox(key="second_contender").set_value(alone)
    at.selectbox(key="budget").set_value(60).run()
    at.radio(key="map_guess").set_value("About equally fast").run()
    at.button(key="measure_map").click().run()
    job = engine.jobs("core.lessons.compare.crossover:measure")[-1]
    wait(engine, job.id, lambda job: any(isinstance(e, Cell) for e in job.events))
    at.run()
    at.button(key="cancel_measure_map").click().run()
    finish(at, engine, job.id)
    open_tab(at, "The race")
    assert at.selectbox(key="second_contender").value == alone  # one choice for both
    assert at.button(key="compare")
    open_tab(at, "The map")
    assert at.selectbox(key="budget").value == 60
    (tab,) = (tab for tab in at.tabs if tab.label == "The map")
    assert len(tab.get("vega_lite_chart")) == 1
    assert engine.job(job.id).status == "cancelled"


def test_a_worker_that_dies_mid_race_leaves_its_trials():

    def draw():
        from dataclasses import replace

        from core.jobs.job import Job
        from core.lessons.compare.race_page import RaceLab
        from core.ui import job_panel
        from tests.app.samples import RACE

        lost = "The worker process ended while it was working."
        arguments = RACE.config, RACE.candidates, RACE.steps, 3
        job = Job("id", "path", arguments, "train", status="failed", message=lost)
        job = replace(job, events=RACE.trials[:5])
        panel = RaceLab().job
        job_panel.ended_badly(job, panel.failed, panel.cancelled)
        RaceLab().show(job, "About equally fast")

    at = AppTest.from_function(draw, default_timeout=60).run()
    assert not at.exception
    assert len(at.error) == 1
    assert len(at.get("vega_lite_chart")) == 2  # these trials have no losses
    assert not at.info  # no verdict on half a race


def test_a_race_explains_its_ratios_only_if_there_are_any():
    captions = len(show_lab("race", RACE).caption)
    trials = (
        replace(trial, train_seconds=slow, evaluate_seconds=slow)
        for trial in RACE.trials
        for slow in (4.0 ** (trial.repeat * trial.candidate),)
    )
    noisy = show_lab("race", replace(RACE, trials=tuple(trials)))
    assert BUSY in texts(noisy.info)
    assert len(noisy.caption) == captions - 1


@pytest.mark.parametrize(
    ("tab", "keys"),
    [("The race", ["race_task", "race_model"]), ("The profile", ["profiled_model"])],
)
def test_compare_offers_only_what_it_can_measure(tab, keys):
    at = open_page("pages/7_Compare.py", tab=tab)
    for key in keys:
        for index in range(len(at.selectbox(key=key).options)):
            at.selectbox(key=key).select_index(index).run()
            assert not at.exception
            assert not at.warning


def test_a_browsers_gpu_is_judged_like_any_other():
    at = show_lab("your_gpu", BROWSER_GPU, "At 256 and above")
    assert "256" in texts(at.success)
    assert len(at.get("vega_lite_chart")) == 3
    assert "83%" in texts(at.markdown)
    assert "`nvidia ampere`" in texts(at.caption)


@pytest.mark.parametrize(
    ("speedups", "first"),
    [
        ((2, 2, 2, 2, 2, 2), 64),
        ((0.5, 1, 2, 2, 2, 2), 256),
        ((0.5,) * 6, None),
        ((0.5, 2, 2, 2, 2, 1), None),
        ((), None),
    ],
)
def test_the_finding_names_the_first_size_at_which_the_gpu_wins(speedups, first):
    sides = zip_longest(BROWSER_GPU.works, speedups)
    works = (
        replace(work, cpu=tuple(ratio * s for s in work.gpu) if ratio else ())
        for work, ratio in sides
    )
    at = show_lab("your_gpu", replace(BROWSER_GPU, works=tuple(works)))
    (finding,) = (element.value for element in at.info)
    sizes = re.findall(r"\d+", finding.partition(".")[0])
    assert sizes == ([f"{first}"] if first else [])
    assert not re.search(r"[{}]|None", texts(at.markdown))


def test_a_coarse_clock_that_nobody_waited_for_shows_nothing():
    at = show_lab("your_gpu", replace(BROWSER_GPU, unwaited=(1e-9,) * 7))
    assert " 0 s" in texts(at.markdown)


def test_a_note_says_why_a_size_has_no_winner():
    *works, product, step = BROWSER_GPU.works[1:6] + BROWSER_GPU.works[-2:]
    works += [replace(product, cpu=()), replace(step, cpu=step.gpu)]
    slow = ("product", 64, "slow")
    gpu = replace(BROWSER_GPU, works=tuple(works), left_out=(slow,))
    sentences = texts(show_lab("your_gpu", gpu).markdown)
    for size in ("Size 64: ", "Batch 10,000: ", "Training step, batch 64: "):
        assert size in sentences


def test_a_software_gpu_wins_nothing_and_its_name_is_literal():
    for name in HOSTILE:
        gpu = replace(BROWSER_GPU, name=name[:60], kind="software")
        at = show_lab("your_gpu", gpu, "At 64 and above")
        assert len(at.info) == 1
        assert not at.success
        assert "evil" not in outside_code(at)


def test_a_gpu_is_measured_once_the_browser_has_one():
    at = open_page("pages/7_Compare.py", tab="Your GPU")
    assert at.button(key="your_gpu").disabled
    request = {"name": "nvidia ampere", "round": 0, "works": [["product", 64]]}

    def report(more):
        at.session_state[COMPONENT] = {"report": request | more}
        at.run()

    report({"id": "an earlier run"})
    at.button(key="your_gpu").click().run()
    go, _ = at.session_state[RUN]
    (address,) = go["works"]
    assert prepared.kept(address.removeprefix(f"{WORK}/"))
    assert len(json.dumps(go)) < 20_000  # the session and the message stay small
    assert not go["answer"]  # that was about another run
    report({"id": go["id"]})
    assert not go["answer"]  # the browser compares the GPU with its own thread
    go["against"] = "torch"
    report({})
    report({"id": go["id"]})
    answer = go["answer"]
    assert len(answer["seconds"]) == 1
    report({})
    report({"id": go["id"]})
    assert go["answer"] is answer  # a round is answered once
    report({"id": go["id"], "result": {"name": "x", "works": "lies"}})
    assert not at.exception
    assert len(at.warning) == 1
    assert not at.button(key="your_gpu").disabled


def test_a_works_address_answers_only_with_what_a_page_has_prepared(monkeypatch):
    monkeypatch.setattr(work, "prepared", Cache(lambda name: (name.encode(), []), 2))
    browser = Client(Starlette(routes=work.ROUTES))
    for name in ("sprites", "sprites/mine"):
        path = f"/{WORK}/{name}"
        assert browser.get(path).status == 404
        work.prepared(name)
        assert browser.get(path).body == name
    for forget in server.FORGET:
        forget("somebody", ["mine"])
    assert browser.get(path).status == 404
    assert browser.get(f"/{WORK}/sprites").status == 200


def test_every_line_beside_a_lesson_is_one_that_ran():
    for lesson in YourGpu.words["lessons"].values():
        for line in lesson["js"].strip().splitlines():
            assert line in SOURCE


def test_a_class_sees_the_gpus_that_were_shared(room, monkeypatch):
    monday = room.create(TEACHER, "Monday", 30, Rules())
    room.start(TEACHER, monday.id)
    at = open_page("pages/7_Compare.py", tab="Your GPU")
    before = len(at.markdown)
    room.join(monday.code, at.session_state["visitor"])
    at.session_state["answers"] = {RESULT: BROWSER_GPU}
    at.run()
    assert len(at.markdown) == before  # others' results are hints, so guess first
    at.radio(key="your_gpu_guess").set_value("At no size").run()
    assert len(at.markdown) > before
    charts = len(at.get("vega_lite_chart"))
    (button,) = (b for b in at.button if b.label.startswith("Show my GPU"))
    button.click().run()
    mine = at.session_state["answers"][SHARED]
    room.join(monday.code, "another")
    server.store().answers.keep("another", SHARED, mine | {"name": HOSTILE[0]})
    at.run()
    assert not at.exception
    assert len(at.get("vega_lite_chart")) == charts + 1
    assert not [b for b in at.button if b.label.startswith("Show my GPU")]
    assert "evil" not in outside_code(at)

    def has_names() -> bool:
        charts = (
            chart.proto.SerializeToString() for chart in at.get("vega_lite_chart")
        )
        return room.names(monday.id)["another"].encode() in b"".join(charts)

    assert not has_names()
    monkeypatch.setattr(room, "is_teacher", lambda _: True)
    at.run()
    assert has_names()
