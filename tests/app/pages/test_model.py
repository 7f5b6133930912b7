import re

import pytest

from core.jobs.engine import Engine
from core.lessons.model import default_device_page, model_to_page, transfers_page
from core.lessons.model.model_result import Crossing
from core.ui import server, simulated
from tests.app.pages.walk import metrics, open_page, open_tab, press, texts
from to_device.errors import ExplainedError


def test_the_model_page_moves_and_measures(engine):
    at = open_page("pages/2_Model.py", tab="Move a model")
    at.selectbox(key="moved_to").set_value("cpu").run()
    press(at, engine, "move_model", model_to_page.PANEL.address)
    assert metrics(at)["Tensors moved"] == "0 of 6"
    assert "`model.to(device)` takes" in texts(at.markdown)
    open_tab(at, "What a transfer costs")
    at.radio(key="transfers_guess").set_value("5 to 20 GB/s").run()
    press(at, engine, "measure_transfers", "core.lessons.model.transfers:measure")
    assert "4 KB" in texts(at.markdown)
    assert len(at.get("vega_lite_chart")) == 1


@pytest.mark.usefixtures("somebody")
def test_a_reload_finds_the_move_again():
    for button in ("move_model", None):
        at = open_page("pages/2_Model.py", tab="Move a model")
        at.selectbox(key="moved_to").set_value("cpu").run()
        if button:
            at.button(key=button).click().run()
    assert metrics(at)["Tensors moved"] == "0 of 6"


def test_without_an_accelerator_the_page_begins_with_the_simulated_one(engine):
    at = open_page("pages/2_Model.py", tab="One batch, step by step")
    if not engine.machine().simulates:
        pytest.skip("a real accelerator")
    assert at.selectbox(key="moved_to").value == "sim"
    text = texts(at.markdown)
    assert simulated.words("simulated.explained") in text
    assert re.search(r"\*\*2 \w+\*\*, 50\.7 kB\b", text)
    at.button(key="step_on").click().run()
    assert transfers_page.in_words(Crossing(0, 0, 0)) in texts(at.markdown)
    for forgotten in model_to_page.MOVES:
        at.toggle(key=f"forget_{forgotten}").set_value(True).run()
        assert "wrapper_SIM_" in texts(at.error)
        assert model_to_page.words("forget.look") in texts(at.markdown)
        assert "wrapper_CUDA_" in texts(at.markdown)
        at.toggle(key=f"forget_{forgotten}").set_value(False).run()
    open_tab(at, "Move a model")
    at.button(key="move_model").click().run()
    assert metrics(at)["Tensors moved"] == "6 of 6"
    assert metrics(at)["On the device before"] == "0 B"
    assert re.search(r"\*\*6 \w+\*\*, 438 kB\b", texts(at.markdown))
    assert model_to_page.words("move.blocks") in texts(at.markdown)
    assert "takes **" not in texts(at.markdown)
    open_tab(at, "In place, or a copy?")
    (table,) = (table.value for table in at.table if "AdamW" in table.value)
    (step,) = (column for column in table if "`model.to(sim)`" in column)
    fails = [outcome.startswith("**") for outcome in table[step]]
    assert fails == [False, False, True]
    open_tab(at, "What a transfer costs")
    counted = transfers_page.words("transfers.counted").partition("{size}")[2]
    assert counted in texts(at.markdown)


@pytest.mark.parametrize("step", ["0.1", "101.0", "1.6", "1.٣", "9" * 5000, "x"])
def test_an_address_with_a_step_that_is_not_there_begins_with_the_first(step):
    at = open_page("pages/2_Model.py", tab="One batch, step by step", step=step)
    assert not at.exception
    assert (at.session_state.batch_number, at.session_state.batch_place) == (1, 0)


def test_a_batch_is_gone_through_step_by_step_and_found_again():
    at = open_page("pages/2_Model.py", tab="One batch, step by step")
    steps = []
    for _ in range(8):
        steps.append(texts(at.code))
        at.button(key="step_on").click().run()
        assert not at.exception
    assert len(set(steps)) == 6  # the seventh is the first step of the second batch
    assert (at.session_state.batch_number, at.session_state.batch_place) == (2, 2)
    at.switch_page("pages/3_Train.py").run()
    at.switch_page("pages/2_Model.py").run()
    assert "→ outputs = model(inputs)" in texts(at.code)
    at.button(key="step_back").click().run()
    assert at.session_state.batch_place == 1
    assert len(at.success) == 1
    step = at.query_params["step"]
    reloaded = open_page("pages/2_Model.py", tab="One batch, step by step", step=step)
    assert texts(reloaded.code) == texts(at.code)
    at.toggle(key="forget_labels").set_value(True).run()
    assert "RuntimeError" in texts(at.error)
    assert "→     loss = criterion(outputs, labels)" in texts(at.code)
    # The error comes first: on a phone, the columns are one below the other.
    drawn = [element for element in at.main if element.type in ("error", "code")]
    marked = [e.type == "error" or "→     loss" in e.value for e in drawn]
    (first, second) = (e for e, counts in zip(drawn, marked, strict=True) if counts)
    assert (first.type, second.type) == ("error", "code")


def test_a_lab_without_an_answer_leaves_the_page_standing(monkeypatch):
    def ask(*_args, **_options):
        raise ExplainedError("The worker gave no answer.")

    server.cached_ask().clear()
    monkeypatch.setattr(Engine, "ask", ask)
    at, unanswered = open_page("pages/2_Model.py", tab="One batch, step by step"), 0
    for tab in ("One batch, step by step", "Move a model", "In place, or a copy?"):
        open_tab(at, tab)
        if tab == "Move a model":
            at.button(key="move_model").click().run()
        assert not at.exception
        unanswered += texts(at.error).count("no answer")
    assert unanswered == 4
    assert len(at.title) == 1


def test_a_default_device_is_for_new_tensors():
    default_device_page.default_device.clear()
    at = open_page("pages/2_Model.py", tab="A default device")
    at.radio(key="default_device_guess").set_value("torch.zeros_like(existing)").run()
    assert "`torch.zeros_like(existing)`" in texts(at.success)
    assert "'cuda' device type for generator" in texts(at.markdown)  # torch's error


@pytest.mark.usefixtures("engine")
def test_a_script_for_the_cpu_becomes_one_for_any_device():
    at = open_page("pages/2_Model.py")
    after = at.code[1].value.splitlines()
    marks = [line.removeprefix("→").strip() for line in after if line.startswith("→")]
    assert len(marks) == 4
    assert [".to(device)" in line for line in marks] == [False, True, True, True]
    (button,) = [button for button in at.button if button.label == "Run both"]
    at = button.click().run()
    assert not at.exception
    before, after = [code.value for code in at.code[:2]]  # above the scripts
    assert "on cpu" in before.splitlines()[-1]
    assert "on cuda:0" in after.splitlines()[-1]
    assert before.splitlines()[:-1] == after.splitlines()[:-1]
