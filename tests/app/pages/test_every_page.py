import time
from dataclasses import replace
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from core import startup
from core.jobs import measurements
from core.jobs.engine import Engine
from core.jobs.job import Job
from core.lessons.compare.device_queue_result import QueueLab
from core.lessons.device import machine_page as machine
from core.lessons.speed.climb_result import Climbed
from core.ui import last_measurement as measured
from core.ui import runs
from core.ui.course import LESSONS, of_address
from tests.app import samples
from tests.app.pages.walk import (
    HOSTILE,
    PAGES,
    all_labs,
    drawn,
    open_page,
    outside_code,
    reversed_times,
    texts,
)

MEASURED: dict[str, tuple] = {  # by what measures it: the result, and the arguments
    "model.transfers:measure": (samples.TRANSFERS,),
    "compare.race:race": (samples.RACE,),
    "compare.timing_pitfalls:measure": (samples.TIMING,),
    "compare.device_queue:measure": (samples.QUEUE, "cuda"),
    "compare.step_profile:measure": (
        *((samples.PROFILE,), samples.RACE.config, (("memory", "cuda"),)),
    ),
    "compare.crossover:measure": (samples.CROSSOVER, samples.PAIR, 10.0),
    "speed.climb:climb": (samples.CLIMBED, samples.CLIMBED.climb, ()),
    "speed.time_to_accuracy:measure": (samples.ACCURACIES, "fashion-mnist", "cuda", 6),
    "speed.loader:measure": (
        *(samples.LOADER, "sprites", "cuda", samples.LOADER.plan, 10.0),
    ),
    "speed.memory:measure": (samples.MEMORY, "cuda"),
    "speed.vectorize:measure": (samples.VECTORIZED, "cuda"),
    "speed.copies:measure": (samples.COPIES, "cuda"),
    "scale.gradients:measure": (samples.GRADIENTS, 2, "sprites", "ann", 32),
    "scale.cost:measure": (samples.COST, "sprites", "ann", 64),
}
RECORDED = measurements.recorded()  # the files in core/reference
TABS = {lab.address: lab.words.get("title") for lab in all_labs()}
MISTAKES = "pages/4_Mistakes.py"  # opens with an error, once its message is known
WITHOUT_GUESS = {"scale.gradients:measure"}  # shows its result at once


def everything(at: AppTest) -> list[str]:
    """All that the page draws: texts, tables, the data of charts, and controls."""
    return [str(getattr(element, "proto", "")) for element in at.main]


@pytest.mark.parametrize("address", sorted({job.address for job in RECORDED}))
def test_a_page_shows_what_other_machines_recorded(address, monkeypatch):
    monkeypatch.setattr(measurements, "recorded", lambda: RECORDED)
    at = open_page(of_address(address).file, tab=TABS.get(address, "The ladder"))
    assert not at.error
    records = [e for e in at.expander if e.label.startswith("Recorded on ")]
    labels = {record.label for record in records}
    assert len(records) == len(labels) == len(measurements.recorded_by(address))
    for record in records:
        assert "NVIDIA" in record.label
        assert "Intel" not in record.label
        assert record.get("vega_lite_chart") or record.dataframe


@pytest.mark.parametrize("function", MEASURED)
def test_a_page_opens_with_what_somebody_measured_here(function, measured_before):
    address, (value, *arguments) = f"core.lessons.{function}", MEASURED[function]
    measured_before[address] = Job(
        address,
        address,
        tuple(arguments),
        lane="train",
        owner="ada",
        status="finished",
        value=value,
        stopped=time.time() - 2 * 3600,
    )
    at = open_page(of_address(address).file, tab=TABS.get(address, "The ladder"))
    assert not at.error
    page_text, told = texts(at.markdown), measured.sentence(measured_before[address])
    assert page_text.count(told) == 1
    assert "ada" not in page_text


@pytest.mark.parametrize(
    "function", [name for name in MEASURED if name not in WITHOUT_GUESS]
)
def test_nothing_on_a_page_depends_on_a_result_before_the_guess(
    function, measured_before
):
    address, (value, *arguments) = f"core.lessons.{function}", MEASURED[function]
    opposite = reversed_times(value)
    if isinstance(value, Climbed):  # the first rung and the limits may be seen
        others = (value.results[0], *opposite.results[1:])
        direct = replace(value.direct, seconds=opposite.direct.seconds)
        opposite = replace(value, results=others, direct=direct)
    if isinstance(value, QueueLab):  # a call must still end after it began
        opposite = replace(value, alone=value.fetched, fetched=value.alone)
    job = Job(address, address, tuple(arguments), lane="train", status="finished")
    job = replace(job, stopped=time.time() - 2 * 3600)

    def draw(value: Any) -> list[str]:
        measured_before[address] = replace(job, value=value)
        return everything(drawn(at.run()))

    measured_before[address] = replace(job, value=value)
    at = open_page(of_address(address).file, tab=TABS.get(address, "The ladder"))
    before = draw(value)
    assert draw(opposite) == before
    guesses = [radio for radio in at.radio if radio.label.startswith("Your guess")]
    if isinstance(value, Climbed):
        guesses = [c for c in at.segmented_control if c.key.startswith("guess_")]
    assert guesses
    for guess in guesses:
        guess.set_value(guess.options[0])
    after = draw(opposite)
    assert draw(value) != after
    assert at.get("vega_lite_chart")


@pytest.mark.parametrize(
    "page", ["pages/3_Train.py", "pages/5_Evaluate.py", "pages/6_Checkpoints.py"]
)
def test_an_unknown_run_is_a_sentence(page):
    at = open_page(page, run="nosuchrun")
    assert runs.words("runs.unknown") in texts(at.warning)


@pytest.mark.parametrize("page", ["home.py", *PAGES])
def test_what_the_address_says_is_never_markdown(page):
    names = ("run", "runs", "mistake", "tab", "task", "colour")
    at = open_page(page, **dict.fromkeys(names, " ".join(HOSTILE)))
    assert not at.error or page == MISTAKES
    assert "evil" not in outside_code(at)
    assert len(at.title) == 1
    is_lesson = page in {lesson.file for lesson in LESSONS}
    assert ("**Read more**" in texts(at.markdown)) == is_lesson


@pytest.mark.parametrize("page", ["pages/5_Evaluate.py", "pages/6_Checkpoints.py"])
def test_regression_is_not_evaluated_as_images_are(run_id, curve_run_id, page):
    at = open_page(page, run=curve_run_id)
    assert len(at.warning) == 1
    listed = {run.id for run in runs.finished()}
    assert run_id in listed
    assert curve_run_id not in listed
    assert at.query_params["run"] in listed


@pytest.mark.usefixtures("engine")
def test_nobody_is_the_first_to_ask(monkeypatch):
    answers = machine.answers, machine.simulated_answers
    for cached_answer in (machine.facts, machine.devices, *answers):
        cached_answer.clear()
    st.cache_data.clear()
    startup.warm_up()
    addresses, ask = set(), Engine.ask

    def note(self, address: str, *arguments, **more):
        in_child = address == "core.jobs.child_process:call_for"
        # Its first argument is a number of seconds.
        addresses.add(arguments[1] if in_child else address)
        return ask(self, address, *arguments, **more)

    monkeypatch.setattr(Engine, "ask", note)
    for page in ("pages/1_Device.py", "pages/2_Model.py"):
        open_page(page)
    # In the background, for the badge of every page.
    background = {"core.devices:describe", "core.data.datasets:status"}
    lives = {"core.lessons.device.hardware:now", "core.lessons.model.model_to:tried"}
    home = {
        "core.lessons.evaluate.evaluation:probabilities"
    }  # once for each finished run
    assert addresses - background - lives - home == set()
