import json
from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from core import devices
from core.jobs.hosts import Host
from core.lessons.device import diagnosis_page
from core.lessons.device import machine_page as machine
from core.ui.server import KeptAnswer
from tests.app.pages.walk import open_page, open_tab, press, texts
from tests.toolkit.diagnose.reports import LINUX
from to_device.diagnose.diagnosis import CAUSES, diagnose
from to_device.diagnose.machine import Facts, VisibleDevice
from to_device.errors import ExplainedError


@pytest.fixture
def device_page(monkeypatch):
    """Opens the Device page on its own machine, with nothing remembered."""
    monkeypatch.setattr(diagnosis_page, "is_direct", lambda _: True)
    caches = (
        machine.facts,
        machine.devices,
        machine.live,
        machine.answers,
        machine.simulated_answers,
    )

    def opened() -> AppTest:
        for cache in caches:
            cache.clear()
        return open_page("pages/1_Device.py")

    yield opened
    for cache in caches:
        cache.clear()


def test_the_device_page_says_what_the_worker_finds(engine, device_page):
    at = device_page()
    text = texts(at.markdown)
    facts = engine.ask(
        "core.jobs.child_process:call", "to_device.diagnose.facts:probe", seconds=60
    )
    assert diagnose(facts).verdict in text
    if engine.machine().simulates:
        assert "| **torch.accelerator** | `cpu` | `sim` |" in text
    text = texts(open_tab(at, "This machine").markdown)
    assert "Memory free" in text
    for device in engine.ask("core.lessons.device.hardware:describe"):
        assert device.device_name in text
    report = json.loads(next(box.value for box in at.code if box.value.startswith("{")))
    assert report["answers"]["any_accelerator"] == devices.available()[0]
    assert report["facts"]["torch"] == facts.torch
    assert len(at.get("download_button")) == 1
    open_tab(at, "Why a GPU is fast")
    at.radio(key="multiply_guess").set_value("Less than 10 times").run()
    press(at, engine, "multiply", "core.lessons.device.parallel:measure")
    assert "**In a chain**" in texts(at.markdown)


@pytest.mark.parametrize(
    ("facts", "cause"),
    [
        (Facts(cuda="13.0", vendors=("NVIDIA",)), "no_driver"),
        (
            Facts(accelerator="cuda", seen=(VisibleDevice("GPU", "", "no kernel"),)),
            "computation_failed",
        ),
        (Facts(accelerator="cuda", seen=(VisibleDevice("GPU"),)), "works"),
    ],
)
@pytest.mark.usefixtures("device_page")
def test_the_device_page_shows_each_kind_of_verdict(monkeypatch, facts, cause):
    monkeypatch.setattr(machine, "facts", KeptAnswer(lambda: facts, 60))
    at = open_page("pages/1_Device.py")
    diagnosis = diagnose(facts)
    assert diagnosis.cause == cause
    assert diagnosis.verdict in texts(at.markdown) + texts(at.error)
    assert bool(at.error) == (diagnosis.state == "broken")
    open_tab(at, "The diagnosis", "code_The check")
    assert f"`{cause}`" in texts(at.markdown)
    assert all(f"`{function.__name__}`" in texts(at.markdown) for function in CAUSES)


def test_a_machine_with_a_gpu_shows_nothing_of_the_simulated_one(monkeypatch, engine):
    cpu_only = engine.machine()
    gpu = replace(cpu_only.devices[0], device="cuda", backend="CUDA")
    why_not = "The simulated accelerator is not offered beside a real one."
    refusing = replace(cpu_only, simulates=False, why_not=why_not)
    with_gpu = replace(refusing, devices=(gpu,))
    for page in ("pages/1_Device.py", "pages/4_Mistakes.py"):
        for description, says in ((with_gpu, False), (refusing, True)):
            monkeypatch.setattr(engine, "machine", lambda machine=description: machine)
            assert (why_not in texts(open_page(page).caption)) == says


@pytest.mark.parametrize("question", ["facts", "answers", "simulated_answers"])
def test_a_worker_that_does_not_answer_is_a_sentence(
    monkeypatch, device_page, question
):
    def silent() -> None:
        raise ExplainedError("The worker did not answer within 60 s.")

    device_page()
    monkeypatch.setattr(machine, question, KeptAnswer(silent, 60))
    at = open_page("pages/1_Device.py")
    assert "did not answer" in texts(at.error)
    assert at.get("page_link")


def test_a_page_whose_facts_are_old_is_drawn_anew(monkeypatch):
    def page() -> None:
        import streamlit as st

        from core.lessons.device import machine_page as machine
        from to_device.diagnose.machine import Facts

        if st.session_state.setdefault("runs", 0) < 3:
            st.session_state.runs += 1
            machine.watch(Facts() if st.session_state.runs == 1 else machine.facts())

    answer = KeptAnswer(lambda: Facts(cuda="13.0"), 60)
    answer()
    monkeypatch.setattr(machine, "facts", answer)
    assert AppTest.from_function(page, default_timeout=60).run().session_state.runs == 2


def test_all_machines_are_named_where_there_are_several(engine, monkeypatch):
    description = engine.machine()
    hosts = [Host("one", "a", 2, True, description), Host("two", "b", 1, False)]
    monkeypatch.setattr(engine, "hosts", lambda: hosts)
    assert "2 machines: `one`, `two`" in texts(open_page("home.py").caption)
    at = open_page("pages/1_Device.py", tab="This machine")
    rows = f"| `one` | {description.devices[0].device_name}", "| `two` | not responding"
    assert all(row in texts(at.main.markdown) for row in rows)
    assert all(row in texts(at.sidebar.markdown) for row in rows)


@pytest.mark.parametrize(("direct", "says"), [(True, False), (False, True)])
def test_on_a_server_the_page_says_whose_machine_it_describes(
    monkeypatch, engine, direct, says
):
    assert engine
    monkeypatch.setattr(diagnosis_page, "is_direct", lambda _: direct)
    at = open_page("pages/1_Device.py")
    assert (diagnosis_page.words("pasted.server") in texts(at.info)) == says
    assert ("The server" in texts(at.markdown)) == says


def test_a_pasted_report_is_diagnosed_and_anything_else_is_a_sentence(engine):
    assert engine
    at = open_page("pages/1_Device.py", tab="Another machine")

    def paste(text: str) -> None:
        at.text_area(key="pasted_report").set_value(text)
        (press,) = (button for button in at.button if button.label == "Diagnose")
        press.click().run()
        assert not at.exception

    paste(LINUX.replace("580.65", "535.18"))
    assert "535.18.06" in texts(at.markdown)
    assert not at.error
    paste("RuntimeError: CUDA error")
    assert len(at.error) == 1
