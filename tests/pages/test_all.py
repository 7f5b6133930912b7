"""Every page, walked through with AppTest against a real engine."""

import io
import json
import re
import subprocess
import sys
import time
from dataclasses import fields, replace
from pathlib import Path

import pytest
from PIL import Image, ImageDraw
from streamlit.testing.v1 import AppTest

from core.compare.candidates import candidates
from core.compare.results import Cell
from core.config import RunConfig
from core.errors import ExplainedError
from core.jobs.cluster import ROOT
from core.jobs.engine import Engine
from core.machine.diagnosis import CAUSES, Facts, VisibleDevice, diagnose
from core.measure import records
from core.mistakes.catalogue import MISTAKES, Failure
from core.speed.ladder import Result
from core.ui import dataset, machine, mistakes, runs
from core.ui.course import LESSONS
from core.ui.evaluate import evaluation
from core.ui.move import batch_steps, model_to

PAGES = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("pages/*.py"))
SHORT = RunConfig(task="sprites", epochs=1, batch_size=256)


@pytest.fixture(autouse=True)
def machine_is_known(engine, monkeypatch):
    """Pages are drawn as they are once the workers have said what is here."""
    # AppTest puts its script there, and children of multiprocessing would run that.
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    deadline = time.monotonic() + 60
    while engine.machine() is None:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def open_page(page: str, **query: str) -> AppTest:
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).run()
    at.switch_page(page)
    for name, value in query.items():
        at.query_params[name] = value
    at.run()
    assert not at.exception
    return at


def texts(elements) -> str:
    return "\n".join(str(element.value) for element in elements)


def finished_run(engine: Engine, config: RunConfig = SHORT) -> str:
    job_id = engine.submit("core.run:run", config)
    while not engine.job(job_id).ended:
        time.sleep(0.05)
    return job_id


def test_every_page_is_a_lesson_and_every_lesson_a_page():
    """The course map and the pages folder list the same pages in the same order."""
    assert [lesson.file for lesson in LESSONS] == PAGES


@pytest.mark.parametrize("page", ["app.py", *PAGES])
def test_a_page_opens_without_an_exception(page):
    """Each page is drawn to its end, with a title and without an error."""
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).run()
    if page != "app.py":
        at.switch_page(page).run()
    assert not at.exception
    assert not at.error
    assert len(at.title) == 1


def test_the_address_presets_the_controls():
    """Good values in the address arrive in the controls, with the model's recipe."""
    at = open_page("pages/3_Train.py", task="sprites", model="cnn", epochs="2")
    state = at.session_state
    assert (state.task, state.model, state.epochs) == ("sprites", "cnn", 2)
    assert state.schedule == "one-cycle"
    assert not at.warning


def test_bad_values_in_the_address_are_ignored_with_a_notice():
    """Each unknown name and impossible value gives a notice; the rest counts."""
    at = open_page(
        "pages/3_Train.py", task="sprites", epochs="900", colour="red", seed="x"
    )
    assert at.session_state.task == "sprites"
    assert at.session_state.epochs == RunConfig.epochs
    assert len(at.warning) == 3
    for name in ("epochs", "colour", "seed"):
        assert name in texts(at.warning)


@pytest.mark.parametrize(
    "page", ["pages/3_Train.py", "pages/4_Evaluate.py", "pages/7_Checkpoints.py"]
)
def test_an_unknown_run_is_a_sentence(page):
    """A link to a run that this server does not know says so."""
    at = open_page(page, run="nosuchrun")
    assert "does not know that run" in texts(at.warning)


def test_start_trains_to_the_end(engine):
    """Pressing the button queues a run whose result the page then shows."""
    at = open_page("pages/3_Train.py", task="sprites", epochs="1", batch_size="256")
    at.button(key="start_training").click().run()
    run_id = at.session_state.run_id
    while not engine.job(run_id).ended:
        time.sleep(0.05)
    at.run()
    assert not at.exception
    assert "classified correctly" in texts(at.success)
    assert at.query_params["run"] == run_id
    assert len(at.get("vega_lite_chart")) == 3


def test_an_impossible_setting_starts_nothing(engine):
    """A learning rate of 0 is answered with a sentence, and no run is queued."""
    before = len(engine.jobs("core.run:run"))
    at = open_page("pages/3_Train.py", task="sprites")
    at.number_input(key="learning_rate").set_value(0.0).run()
    at.button(key="start_training").click().run()
    assert "Nothing was started" in texts(at.warning)
    assert len(engine.jobs("core.run:run")) == before


def test_a_failed_run_shows_its_reason(engine):
    """A run that failed shows the sentence it failed with."""
    run_id = finished_run(engine, RunConfig(task="sprites", learning_rate=1e25))
    assert "learning rate" in texts(open_page("pages/3_Train.py", run=run_id).error)


def test_another_model_brings_its_recipe():
    """Choosing the CNN sets the epochs, batch and rate that it is trained with."""
    at = open_page("pages/3_Train.py", task="sprites")
    at.get_by_key("model").set_value("cnn").run()
    recipe = RunConfig.with_recipe(model="cnn")
    state = at.session_state
    assert (state.epochs, state.batch_size) == (recipe.epochs, recipe.batch_size)
    assert state.learning_rate == recipe.learning_rate


def settings_of(at: AppTest) -> RunConfig:
    """The configuration that the controls of the Train page show."""
    names = [field.name for field in fields(RunConfig)]
    return RunConfig(**{name: at.session_state[name] for name in names})


def test_the_fast_setting_is_set_and_taken_back():
    """The button sets the controls, another model stays fast, and there is a way back.

    A control that is changed afterwards makes it a setting of one's own, from which the
    button leads to the fast one again.
    """
    at = open_page("pages/3_Train.py", task="sprites", seed="7")
    at.button(key="fast_setting").click().run()
    fast = RunConfig.with_recipe(task="sprites", seed=7, fast=True)
    assert settings_of(at) == fast
    at.number_input(key="epochs").set_value(fast.epochs + 1).run()
    assert at.button(key="fast_setting").label == "Use the fast setting"
    at.button(key="fast_setting").click().run()
    at.get_by_key("model").set_value("cnn").run()
    assert settings_of(at) == RunConfig.with_recipe(
        task="sprites", seed=7, model="cnn", fast=True
    )
    assert at.button(key="fast_setting").label == "Back to the default setting"
    at.button(key="fast_setting").click().run()
    assert settings_of(at) == RunConfig.with_recipe(task="sprites", seed=7, model="cnn")
    at.get_by_key("model").set_value("ann").run()
    assert settings_of(at) == RunConfig.with_recipe(task="sprites", seed=7)


def test_the_address_presets_the_fast_setting():
    """fast=1 is the model's fast setting, and what else is given wins over it."""
    query = {"task": "sprites", "model": "cnn", "fast": "1"}
    expected = RunConfig.with_recipe(task="sprites", model="cnn", fast=True)
    assert settings_of(open_page("pages/3_Train.py", **query)) == expected
    at = open_page("pages/3_Train.py", epochs="2", **query)
    assert settings_of(at) == replace(expected, epochs=2)
    assert not at.warning
    at = open_page("pages/3_Train.py", task="sprites", fast="very")
    assert "fast must be true or false, not 'very'" in texts(at.warning)
    assert settings_of(at) == RunConfig(task="sprites")


def test_regression_has_no_fast_setting():
    """Its button is absent, its address tells, and to come from there resets all."""
    at = open_page("pages/3_Train.py", task="regression", fast="1")
    assert "fast must be false for the model simple" in texts(at.warning)
    keys = {each.key for each in at.button}
    assert "start_training" in keys
    assert "fast_setting" not in keys
    at = open_page("pages/3_Train.py", task="sprites", fast="1")
    at.get_by_key("task").set_value("regression").run()
    assert not at.exception
    assert settings_of(at) == RunConfig.with_recipe(task="regression")


@pytest.mark.parametrize(
    ("problem", "source"), [(None, None), ("train-labels was altered.", "/data")]
)
def test_without_the_data_the_app_trains_on_sprites(monkeypatch, problem, source):
    """Missing or damaged data: the page says so, offers to fetch, presets sprites."""
    status = {"source": source, "problem": problem, "named": False}
    machine = Engine.machine
    monkeypatch.setattr(
        Engine, "machine", lambda self: {**machine(self), "fashion_mnist": status}
    )
    at = open_page("pages/3_Train.py")
    assert at.session_state.task == "sprites"
    assert at.button(key="fetch_data")
    said = texts(at.error) if problem else texts(at.info)
    assert (problem or "not on this machine") in said


def test_a_failed_download_is_shown_as_failed(monkeypatch, engine):
    """A download that fails says so on the page, and can be started again."""
    status = {"source": None, "problem": None, "named": False}
    machine = Engine.machine
    monkeypatch.setattr(
        Engine, "machine", lambda self: {**machine(self), "fashion_mnist": status}
    )
    # Any job that fails will do; tests of core.data.fashion_mnist fail the real one.
    monkeypatch.setattr(dataset, "FETCH", "core.devices:resolve")
    at = open_page("pages/3_Train.py")
    at.button(key="fetch_data").click().run()
    job_id = at.session_state.fetch_id
    while not engine.job(job_id).ended:
        time.sleep(0.05)
    at.run()
    assert "was not fetched" in str([error.proto.title for error in at.error])
    assert at.button(key="fetch_data")


def test_evaluate_shows_the_answers(engine):
    """Evaluating a finished run shows the accuracy that the run ended with."""
    run_id = finished_run(engine)
    at = open_page("pages/4_Evaluate.py", run=run_id)
    at.button(key="evaluate").click().run()
    assert not at.exception
    shown = {metric.label: metric.value for metric in at.metric}
    result = engine.job(run_id).value
    assert shown["Test accuracy"] == f"{result.test_accuracy:.2%}"
    assert shown["Correct"] == f"{result.test_correct:,} of {result.test_total:,}"
    assert len(at.get("image")) == evaluation.PICTURES + 1  # and the one to predict


def test_evaluate_measures_the_three_modes(engine):
    """The comparison runs in the queue and ends with a chart each for time, memory."""
    at = open_page("pages/4_Evaluate.py", run=finished_run(engine))
    at.button(key="compare_modes").click().run()
    (job_id,) = at.session_state.mode_jobs.values()
    while not engine.job(job_id).ended:
        time.sleep(0.05)
    at.run()
    assert not at.exception
    assert not at.error
    assert len(at.get("vega_lite_chart")) == 3  # one is of a prediction


@pytest.fixture
def device_page():
    """Opens the Device page with nothing remembered from the last time."""
    caches = (
        machine.facts,
        machine.devices,
        machine.live,
        machine.answers,
        machine.default_device,
    )

    def opened() -> AppTest:
        for each in caches:
            each.clear()
        return open_page("pages/1_Device.py")

    yield opened
    for each in caches:
        each.clear()


def test_the_device_page_says_what_the_worker_finds(engine, device_page):
    """Verdict, devices and answers on the page are those of the worker, now."""
    at = device_page()
    shown = texts(at.markdown)
    known = engine.ask("core.jobs.sandbox:call", "core.machine.facts:probe", seconds=60)
    assert diagnose(known).verdict in shown
    for device in engine.ask("core.machine.hardware:describe"):
        assert device["device_name"] in shown
    report = json.loads(
        next(each.value for each in at.code if each.value.startswith("{"))
    )
    assert report["answers"] == engine.ask("core.machine.idioms:answers")
    assert report["facts"]["torch"] == known.torch
    assert len(at.get("download_button")) == 1


def test_the_device_page_is_quick_once_the_app_is_warm(device_page):
    """With everything asked anew, the page is finished in 2 seconds.

    The best of three: other programs may keep the machine busy.
    """
    device_page()
    seconds = []
    for _ in range(3):
        began = time.monotonic()
        device_page()
        seconds.append(time.monotonic() - began)
    assert min(seconds) < 2


@pytest.mark.parametrize(
    ("facts", "cause"),
    [
        (Facts(cuda="13.0", vendors=("NVIDIA",)), "no_driver"),
        (
            Facts(
                cuda="13.0",
                architectures=("sm_75",),
                accelerator="cuda",
                seen=(VisibleDevice("Old GPU", "sm_61", "no kernel image"),),
            ),
            "architecture_missing",
        ),
        (
            Facts(
                cuda="13.0",
                accelerator="cuda",
                seen=(VisibleDevice("New GPU", "sm_90"),),
            ),
            "works",
        ),
    ],
)
@pytest.mark.usefixtures("device_page")
def test_the_device_page_shows_each_kind_of_verdict(monkeypatch, facts, cause):
    """An accelerator, a cure and a failure are drawn; only the failure is an error."""
    monkeypatch.setattr(machine, "facts", lambda: facts)
    at = open_page("pages/1_Device.py")
    found = diagnose(facts)
    assert found.cause == cause
    assert found.verdict in texts(at.markdown) + texts(at.error)
    assert bool(at.error) == (found.state == "broken")
    assert f"`{cause}`" in texts(at.markdown)
    assert all(f"`{each.__name__}`" in texts(at.markdown) for each in CAUSES)


def test_a_worker_that_does_not_answer_is_a_sentence(monkeypatch, device_page):
    """Where the facts don't come, the Device page says so and leads on."""

    def silent() -> None:
        raise ExplainedError("The worker gave no answer in 60 seconds.")

    device_page()
    monkeypatch.setattr(machine, "facts", silent)
    at = open_page("pages/1_Device.py")
    assert "no answer" in texts(at.error)
    assert at.get("page_link")


def find_mistake(at: AppTest, text: str) -> AppTest:
    """Paste a text into the search of the Mistakes page."""
    at.text_area(key="pasted_error").set_value(text)
    (find,) = [each for each in at.button if each.label == "Find the mistake"]
    return find.click().run()


def first_mistake(at: AppTest) -> str:
    """The slug of the first card."""
    keys = [each.key for each in at.button if each.key.startswith("run_mistake_")]
    return keys[0].removeprefix("run_mistake_")


def test_all_mistakes_can_be_run_from_their_page():
    """There is one button for each mistake, and none stands twice."""
    at = open_page("pages/8_Mistakes.py")
    keys = [each.key for each in at.button if each.key.startswith("run_mistake_")]
    assert sorted(keys) == sorted(f"run_mistake_{each.slug}" for each in MISTAKES)


def test_a_loud_mistake_shows_its_message_and_its_fix():
    """Run it: the live message, the marked line, and the fix; kept for later."""
    at = open_page("pages/8_Mistakes.py")
    at.button(key="run_mistake_numpy_requires_grad").click().run()
    for _ in range(2):
        assert not at.exception
        assert "requires grad" in texts(at.error)
        assert "It returns" in texts(at.success)
        marked = [each.value for each in at.code if "# ^^^" in each.value]
        assert "return outputs.numpy().mean()\n# ^^^" in marked[0]
        at.switch_page("app.py").run()
        at.switch_page("pages/8_Mistakes.py").run()


def test_a_silent_mistake_shows_both_figures():
    """Run it: two figures under one label, and where they were measured."""
    at = open_page("pages/8_Mistakes.py")
    at.button(key="run_mistake_list_never_trained").click().run()
    assert [each.value for each in at.metric] == ["650", "109,386"]
    assert "torch" in texts(at.caption)
    assert not at.error


def test_a_pasted_error_brings_its_mistake_to_the_top():
    """The mistake that fits comes first, with its code; the others stay below."""
    at = open_page("pages/8_Mistakes.py", mistake="out_of_memory")
    assert first_mistake(at) == "out_of_memory"
    find_mistake(at, "IndexError: Target 37 is out of bounds.")
    assert not at.exception
    assert first_mistake(at) == "label_outside_classes"
    assert "mistake" not in at.query_params
    assert any("first_label=1" in each.value for each in at.code)


@pytest.mark.parametrize("text", ["ModuleNotFoundError: No module named 'x'", "$ <b>"])
def test_an_error_that_is_none_of_them_is_told_so(text):
    """Where none fits the page says so, and shows all as before."""
    at = find_mistake(open_page("pages/8_Mistakes.py"), text)
    assert not at.exception
    assert "None of the" in texts(at.info)
    assert first_mistake(at) == MISTAKES[0].slug


def test_an_unknown_mistake_in_the_address_is_a_notice():
    """A link to a mistake that there is not says so, and all others are shown."""
    at = open_page("pages/8_Mistakes.py", mistake="<b>nosuch</b>")
    assert "not on this page" in texts(at.warning)
    assert first_mistake(at) == MISTAKES[0].slug


def test_a_mistake_that_gets_no_answer_is_a_sentence(monkeypatch):
    """Where the lab does not answer in time, the card says so and can be run again."""

    def no_answer(*_, **__):
        raise ExplainedError("The worker gave no answer in 60 seconds.")

    at = open_page("pages/8_Mistakes.py")
    with monkeypatch.context() as patch:
        patch.setattr(Engine, "ask", no_answer)
        at.button(key="run_mistake_cuda_hard_coded").click().run()
    assert not at.exception
    assert "gave no answer" in texts(at.warning)
    at.button(key="run_mistake_cuda_hard_coded").click().run()
    assert not at.warning
    assert at.success


def test_one_mistake_a_person_and_few_at_once():
    """A person with one running gets no second; a third person waits for a turn."""
    turns = mistakes.Turns(at_once=2)
    with turns.take("ana"), turns.take("bo"):
        with pytest.raises(ExplainedError, match="running already"), turns.take("ana"):
            pytest.fail("she has one")
        with (
            pytest.raises(ExplainedError, match="no turn"),
            turns.take("eve", seconds=0.05),
        ):
            pytest.fail("two are running")
    with turns.take("eve", seconds=0.05), turns.take("ana", seconds=0.05):
        pass


def test_a_turn_ends_with_an_error():
    """Whoever's mistake could not be run may try again, and blocks nobody."""
    turns = mistakes.Turns(at_once=1)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError), turns.take("ana", seconds=0.05):
            raise ZeroDivisionError


def test_a_remark_stands_under_the_statement_that_raised():
    """Also where the statement has several lines, or stands in a block."""
    code = "if x:\n    a = f(\n        1,\n    )\nreturn a"

    def remark(line: int) -> list[str]:
        failure = Failure("KeyError", "", line, "", False)
        return mistakes.marked(code, failure).splitlines()

    assert remark(2)[4:6] == ["    # ^^^^", "    # KeyError"]
    assert remark(1)[1:3] == ["# ^^^", "# KeyError"]
    assert remark(5)[5:] == ["# ^^^^^^", "# KeyError"]
    assert mistakes.marked(code, None) == code


def test_a_message_is_shown_as_it_is():
    """No character of an error message is taken for Markdown."""
    message = "`a` *b* __init__ [c](d) $e$ :smile: <b> # 1. |"
    at = AppTest.from_string(
        "import streamlit as st\n"
        "from core.ui.mistakes import literal\n"
        f"st.error(literal({message!r}))"
    ).run()
    shown = at.error[0].value
    assert shown.replace("\\", "") == message
    assert shown.count("\\") > 20


@pytest.fixture(scope="module")
def checkpoints_run(engine) -> str:
    """A finished run that several tests look at."""
    return finished_run(engine)


def open_checkpoints(run_id: str) -> AppTest:
    return open_page("pages/7_Checkpoints.py", run=run_id)


def upload(at: AppTest, content: bytes, name: str = "model.pt") -> AppTest:
    file = (name, content, "application/octet-stream")
    at.file_uploader(key="upload_checkpoint").set_value(file)
    return at.run()


def metrics(at: AppTest) -> dict[str, str]:
    return {metric.label: metric.value for metric in at.metric}


def wait_for(engine: Engine, job_id: str, at: AppTest) -> AppTest:
    while not engine.job(job_id).ended:
        time.sleep(0.05)
    at.run()
    assert not at.exception
    assert not at.error
    return at


def test_checkpoints_without_a_run(monkeypatch):
    """Before any run has finished, the page says how to get one, and loads files."""
    monkeypatch.setattr(runs, "runs", lambda *_: [])
    at = open_page("pages/7_Checkpoints.py")
    assert "No run on images has finished" in texts(at.markdown)
    assert at.file_uploader(key="upload_checkpoint")
    assert not at.download_button


def test_a_checkpoint_is_described_and_downloaded(engine, checkpoints_run):
    """What is in the file is listed, and both formats and the scripts are offered."""
    at = open_checkpoints(checkpoints_run)
    result = engine.job(checkpoints_run).value
    assert metrics(at)["Parameters"] == f"{result.parameters:,}"
    table = at.dataframe[0].value
    assert table["Bytes"].sum() == 4 * result.parameters
    keys = {button.key for button in at.download_button}
    assert keys == {
        *("download_pt", "download_safetensors"),
        *("download_script", "download_notebook"),
    }
    assert "python -m core.run --task sprites" in texts(at.code)


def test_an_upload_evaluates_to_its_accuracy(engine, checkpoints_run):
    """A run's own file, uploaded, fits and has the accuracy that the run ended with."""
    result = engine.job(checkpoints_run).value
    at = upload(open_checkpoints(checkpoints_run), result.checkpoint)
    assert "It fits the ANN" in texts(at.success)
    at.button(key="evaluate_upload").click().run()
    assert metrics(at)["Test accuracy"] == f"{result.test_accuracy:.2%}"
    assert not at.exception


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "empty"),
        (b"\x89PNG\r\n", "PNG image"),
        (b"PK\x03\x04 and no more", "truncated"),
        (b"\x80\x04\x95", "plain pickle"),
    ],
)
def test_a_bad_upload_is_one_sentence(engine, content, sentence):
    """A file that is no checkpoint is refused in words, and the page goes on."""
    at = upload(open_page("pages/7_Checkpoints.py"), content)
    assert not at.exception
    assert sentence in texts(at.error)
    assert len(at.error) == 1
    assert engine.ask("core.jobs.sandbox:call", "core.jobs.sandbox:nothing") is None


def test_a_file_of_another_model_is_listed(checkpoints_run, engine):
    """Held against the CNN, the ANN's file is shown with what lacks and what is odd."""
    at = open_checkpoints(checkpoints_run)
    at.selectbox(key="upload_model").set_value("cnn")
    upload(at, engine.job(checkpoints_run).value.checkpoint)
    assert "26 missing, 6 unexpected" in texts(at.error)
    columns = [str(each.value.columns[0]) for each in at.dataframe]
    assert any(column.startswith("Missing") for column in columns)
    assert any(column.startswith("Unexpected") for column in columns)


def test_a_round_trip_is_exact_here(engine, checkpoints_run):
    """From the CPU to the CPU no logit differs, and the page says that."""
    at = open_checkpoints(checkpoints_run)
    at.selectbox(key="save_on").set_value("cpu")
    at.selectbox(key="load_on").set_value("cpu")
    at.button(key="round_trip").click().run()
    wait_for(engine, at.session_state.round_trips[checkpoints_run], at)
    assert metrics(at)["Logits that differ"] == "0 of 20,000"
    assert "the same model" in texts(at.success)


def test_resuming_is_shown_beside_training_through(engine, checkpoints_run):
    """Both curves are on one chart, and on the CPU their difference is 0."""
    at = open_checkpoints(checkpoints_run)
    at.number_input(key="resume_epochs").set_value(1)
    at.button(key="resume").click().run()
    wait_for(engine, at.session_state.resumes[checkpoints_run], at)
    shown = metrics(at)
    assert float(shown["With the weights alone"]) > 0
    assert len(at.get("vega_lite_chart")) == 1
    if engine.machine()["devices"][0]["backend"] == "CPU":
        assert shown["Greatest difference"] == "0"
        assert "bit for bit" in texts(at.success)


@pytest.mark.parametrize(
    ("slug", "said"),
    [
        ("pickle", "io.open"),
        ("cuda", "CUDA"),
        ("architecture", "Missing key(s)"),
    ],
)
def test_what_can_go_wrong_is_tried(checkpoints_run, slug, said):
    """Each button makes the mistake and shows PyTorch's own message."""
    at = open_checkpoints(checkpoints_run)
    before = len(at.code)
    at.button(key=f"try_{slug}").click().run()
    assert not at.exception
    assert not at.error
    assert len(at.code) > before
    assert said in texts(at.code)
    assert at.success


def test_a_finished_run_can_be_taken_home_from_the_train_page(checkpoints_run):
    """The Train page offers the script of the run that it shows."""
    at = open_page("pages/3_Train.py", run=checkpoints_run)
    keys = {button.key for button in at.download_button}
    assert keys == {"download_script", "download_notebook"}


def test_no_page_makes_the_server_import_torch():
    """After every page was drawn, the process has not imported torch."""
    script = f"""
import sys
from streamlit.testing.v1 import AppTest
at = AppTest.from_file("app.py", default_timeout=60).run()
for page in {PAGES}:
    at.switch_page(page).run()
    assert not at.exception
from core.ui.server import engine
engine().ask("core.devices:describe", seconds=120)
engine().close()
print("torch" in sys.modules, "torchvision" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=Path(ROOT),
        capture_output=True,
        text=True,
        timeout=180,
        check=True,
    )
    assert done.stdout.split()[-2:] == ["False", "False"]


def test_the_model_page_moves_and_measures(engine):
    """A press moves every tensor and times it; another one ends with a curve."""
    at = open_page("pages/2_Model.py")
    at.button(key="move_model").click().run()
    at.button(key="measure_transfers").click().run()
    for job_id in (*at.session_state.model_jobs.values(), at.session_state.transfer_id):
        while not engine.job(job_id).ended:
            time.sleep(0.05)
    at.run()
    assert not at.exception
    assert not at.error
    assert {metric.label: metric.value for metric in at.metric}["Tensors moved"] == (
        "6 of 6"
    )
    said = texts(at.markdown)
    assert "`model.to(device)` takes" in said
    assert "levels out at" in said
    assert len(at.get("vega_lite_chart")) == 1


def test_a_batch_is_gone_through_step_by_step_and_found_again():
    """Six steps, then the next batch; another page between changes nothing."""
    at = open_page("pages/2_Model.py")
    shown = []
    for _ in range(8):
        shown.append(texts(at.code))
        at.button(key="step_on").click().run()
        assert not at.exception
    assert len(set(shown)) == 6  # the seventh is the first step of the second batch
    assert (at.session_state.batch_number, at.session_state.batch_place) == (2, 2)
    at.switch_page("pages/3_Train.py").run()
    at.switch_page("pages/2_Model.py").run()
    assert "outputs = model(inputs)" in texts(at.code)
    at.button(key="step_back").click().run()
    assert at.session_state.batch_place == 1


def test_a_lab_without_an_answer_leaves_the_page_standing(monkeypatch):
    """Where the lab fails, each part says so and the rest of the page is there."""

    def ask(*_args, **_options):
        raise ExplainedError("The worker gave no answer.")

    for name in (model_to.findings, batch_steps.batch):
        name.clear()
    monkeypatch.setattr(Engine, "ask", ask)
    at = open_page("pages/2_Model.py")
    at.button(key="move_model").click().run()
    assert not at.exception
    assert texts(at.error).count("no answer") == 3
    assert len(at.title) == 1


def test_a_record_of_another_machine_is_shown_as_recorded(monkeypatch, tmp_path):
    """Its curve comes with its device and date; a damaged one with a notice."""
    points = [
        {"direction": d, "memory": "pinned", "bytes": 4096, "seconds": [1e-5] * 5}
        for d in ("host to device", "device to host")
    ]
    figures = {"date": "2026-11-20", "environment": {"device_name": "Testing card"}}
    records.write({**figures, "transfers": points}, tmp_path)
    damaged = {"date": "2026-11-20", "environment": {"device_name": "Cut card"}}
    records.write({**damaged, "transfers": [{"bytes": 1}]}, tmp_path)
    found = records.records(tmp_path)
    monkeypatch.setattr(records, "records", lambda: found)

    def draw():
        from core.jobs.engine import Job
        from core.move.results import Transfer
        from core.ui.move import transfers

        here = Transfer("host to host", "new memory", 4096, (1e-6,) * 5)
        transfers.draw(Job("id", "path", (), "train", events=(here,)))

    at = AppTest.from_function(draw).run()
    assert not at.exception
    (chart,) = at.get("vega_lite_chart")
    assert "facet" in chart.proto.spec
    assert "Testing card, recorded 2026-11-20" in chart.proto.spec
    assert "Cut card" in texts(at.warning)


def test_a_picture_is_predicted(engine):
    """A test image by its number, a file, a photo: all end with ten probabilities."""
    at = open_page("pages/4_Evaluate.py", run=finished_run(engine))
    at.number_input(key="picture_number").set_value(7).run()
    assert not at.error
    assert "Test image 7" in texts(at.markdown)
    assert "The model says" in texts(at.markdown)
    at.radio(key="picture_source").set_value("A file").run()
    assert "The model says" not in texts(at.markdown)
    drawn = io.BytesIO()
    shirt = ImageDraw.Draw(image := Image.new("L", (90, 120), 240))
    shirt.rectangle((25, 30, 65, 90), fill=40)
    image.save(drawn, "PNG")
    uploader = at.file_uploader(key="picture_file")
    uploader.upload("shirt.png", drawn.getvalue(), "image/png").run()
    assert not at.error
    assert "The model says" in texts(at.markdown)
    assert "Photos are unlike the training set" in texts(at.markdown)
    at.file_uploader(key="picture_file").upload("x.png", b"none", "image/png").run()
    assert not at.exception
    assert "not a picture" in texts(at.error)
    at.radio(key="picture_source").set_value("The camera").run()
    assert not at.error
    image.save(photo := io.BytesIO(), "JPEG")
    at.camera_input(key="picture_photo").upload("me.jpg", photo.getvalue()).run()
    assert not at.error
    assert "The model says" in texts(at.markdown)


def press(at: AppTest, engine: Engine, key: str, path: str) -> AppTest:
    """Press a button, wait for the job that it starts, draw the page again."""
    at.button(key=key).click().run()
    job = engine.jobs(path)[-1]
    while not engine.job(job.id).ended:
        time.sleep(0.05)
    at.run()
    assert not at.exception
    assert not at.error
    return at


def test_a_race_ends_with_a_verdict_and_files(engine):
    """Bars, speed-ups, curves, why they agree, and both files to download."""
    at = open_page("pages/5_Compare.py")
    # The machine that tests run on is busy: one thread against itself.
    for name in ("first_contender", "second_contender"):
        box = at.selectbox(key=name)
        box.set_value(next(o for o in compared() if o.threads == 1))
    at.selectbox(key="race_task").set_value("sprites")
    at.number_input(key="race_steps_ann").set_value(20)
    at.number_input(key="race_repeats").set_value(3).run()
    at = press(at, engine, "compare", "core.compare.race:race")
    said = texts(at.info)
    assert "wins" in said or "Too close to call" in said
    assert "bit for bit" in texts(at.markdown)
    assert len(at.get("vega_lite_chart")) == 3
    assert "n = 3" in texts(at.caption)
    labels = [button.proto.label for button in at.get("download_button")]
    assert labels == ["CSV", "JSON"]


def compared():
    """The contenders on the page."""
    from core.ui.server import engine

    return candidates(engine().machine())


def test_an_impossible_race_is_not_started():
    """A number out of range is answered with a sentence; the button is off."""
    at = open_page("pages/5_Compare.py")
    at.number_input(key="race_repeats").set_value(1).run()
    assert "Repeats must be from 3 to 30" in texts(at.warning)
    assert at.button(key="compare").disabled
    at.number_input(key="race_repeats").set_value(3).run()
    assert not at.button(key="compare").disabled


def test_the_learner_guesses_before_the_readings_show(engine):
    """No guess, no button; then readings, and what the guess was worth."""
    at = open_page("pages/5_Compare.py")
    assert at.button(key="time_it").disabled
    at.radio(key="timing_guess").set_value("About as long").run()
    at = press(at, engine, "time_it", "core.compare.timing_pitfalls:measure")
    said = texts(at.info) + texts(at.success)
    assert "The first call took" in said
    assert len(at.get("vega_lite_chart")) == 1


def test_a_step_is_taken_apart_and_the_map_measured(engine):
    """The bottleneck is named, the trace can be taken; a map says who wins where."""
    at = open_page("pages/5_Compare.py")
    at = press(at, engine, "take_apart", "core.compare.step_profile:measure")
    assert "**load**" in texts(at.markdown)
    labels = [button.proto.label for button in at.get("download_button")]
    assert "Trace for Perfetto" in labels
    first = at.selectbox(key="second_contender")
    first.set_value(next(o for o in compared() if o.threads == 1))
    at.selectbox(key="budget").set_value(60).run()
    before = len(at.get("vega_lite_chart"))
    at.button(key="measure_map").click().run()
    job = engine.jobs("core.compare.crossover:measure")[-1]
    while not any(isinstance(e, Cell) for e in engine.job(job.id).events):
        time.sleep(0.05)
    at.run()
    at.button(key="cancel_measure_map").click().run()
    while not engine.job(job.id).ended:
        time.sleep(0.05)
    at.run()
    assert not at.exception
    assert len(at.get("vega_lite_chart")) == before + 1
    assert "Cancelled. What was measured until then stays" in texts(at.info)
    assert "too close to call" in texts(at.markdown)


@pytest.mark.parametrize(
    ("lab", "guesses"),
    [("loader", "loader_guess"), ("vectorize", "vectorize_guess")],
)
def test_a_lab_waits_for_a_guess(lab, guesses):
    """Its button is off until the learner has said what to expect."""
    at = open_page("pages/6_Speed.py")
    assert at.button(key=f"run_{lab}_lab").disabled
    assert not at.button(key="run_memory_lab").disabled
    at.radio(key=guesses).set_value(at.radio(key=guesses).options[0]).run()
    assert not at.button(key=f"run_{lab}_lab").disabled


def test_small_copies_are_measured_and_judged(engine):
    """The guess is held against what was found; both charts and files are there."""
    at = open_page("pages/6_Speed.py")
    at.radio(key="copies_guess").set_value("About as long").run()
    at = press(at, engine, "run_copies_lab", "core.speed.copies:measure")
    assert "10,000 pieces take" in texts(at.info) + texts(at.success)
    assert "`.item()` in every step takes" in texts(at.markdown)
    assert len(at.get("vega_lite_chart")) == 2
    keys = {button.key for button in at.download_button}
    assert {"small_copies_csv", "small_copies_json"} <= keys


def test_a_loader_lab_that_is_cancelled_keeps_its_cells(engine):
    """It ends within seconds, and what was measured is drawn and named."""
    at = open_page("pages/6_Speed.py")
    at.radio(key="loader_guess").set_value(0).run()
    at.selectbox(key="loader_budget").set_value(60).run()
    at.button(key="run_loader_lab").click().run()
    job = engine.jobs("core.speed.loader:measure")[-1]
    while len(job.events) < 3 and not job.ended:  # picked up, and two cells
        job = engine.job(job.id)
        time.sleep(0.05)
    at.run()
    at.button(key="cancel_run_loader_lab").click().run()
    asked = time.monotonic()
    while not engine.job(job.id).ended:
        time.sleep(0.05)
    assert time.monotonic() - asked < 10
    at.run()
    assert not at.exception
    assert not at.error
    assert "Cancelled. What was measured until then stays" in texts(at.info)
    assert "The fastest cell" in texts(at.markdown)
    assert len(at.get("vega_lite_chart")) == 1


def test_the_labs_say_what_they_found_on_an_accelerator():
    """Charts, sentences and failures of results as a GPU machine brings them."""

    def draw():
        from core.jobs.engine import Job
        from core.ui.speed import copies, loader, memory, vectorize
        from tests.speed import test_rows as found

        def job(name, value, *arguments):
            return Job(name, "path", arguments, "train", status="finished", value=value)

        done = job("loader", found.LOADER, "sprites", "cuda", found.LOADER.plan)
        loader.result(done, 0, cores=2)
        memory.result(job("memory", found.MEMORY))
        vectorize.result(job("vectorize", found.VECTORS), "NumPy")
        copies.result(job("copies", found.COPIES), "About as long")

    at = AppTest.from_function(draw).run()
    assert not at.exception
    assert len(at.get("vega_lite_chart")) == 5
    said = texts(at.markdown)
    for sentence in (
        "“Always pin”: 1.00 times as fast as without",
        "“One worker per core”, 2 here: 51,200 samples/s at batch size 64, which noth",
        "**Checkpointed**: 50% of the peak memory, 1.00 times the time",
        "differ by at most 1.0e-08, where the greatest is 0.1",
        "1 point: **Python loop** is 40 times as fast as torch on CUDA",
        "100,000 points: **torch on CUDA** is 2,000 times as fast as Python loop",
        "`.item()` in every step takes **0.10 times** as long",
        "then has nothing to do until the host is back",
    ):
        assert sentence in said
    assert "failed: no room" in texts(at.warning)
    assert "The 10 seconds were over: 3 of 12 cells" in texts(at.caption)
    assert "**2 workers** are fastest here" in texts(at.info)


def test_where_memory_is_not_counted_time_is_shown():
    """No point is drawn at 0 MB; the page says why, and gives the seconds."""

    def draw():
        from dataclasses import replace

        from core.jobs.engine import Job
        from core.ui.speed import memory
        from tests.speed.test_rows import MEMORY

        costs = tuple(replace(cost, peak_bytes=None) for cost in MEMORY.costs)
        value = replace(MEMORY, costs=costs)
        memory.result(Job("id", "path", (), "train", "", "finished", value=value))

    at = AppTest.from_function(draw).run()
    assert not at.exception
    assert not at.get("vega_lite_chart")
    assert "does not count peak memory" in texts(at.info)
    assert "**Checkpointed**: 1.00 times the time" in texts(at.markdown)


def test_recorded_comparisons_are_shown_as_recorded(monkeypatch, tmp_path):
    """Each section shows them with device and date; a damaged one gives a notice."""
    from dataclasses import asdict

    from core import restore
    from tests.compare.test_rows import CARD, LAB, MAP, PARTED, RACE

    whole = {
        "date": "2026-11-20T10:00:00+00:00",
        "environment": CARD,
        "races": [restore.race_to_json(RACE)],
        "crossovers": [asdict(MAP)],
        "labs": [asdict(LAB)],
        "breakdowns": [restore.breakdown_to_json(PARTED)],
    }
    records.write(whole, tmp_path)
    (tmp_path / "old.json").write_text('{"format": 0}')
    found = records.records(tmp_path)
    monkeypatch.setattr(records, "records", lambda: found)
    at = open_page("pages/5_Compare.py")
    labels = [expander.label for expander in at.expander]
    assert len(labels) >= 3
    assert all("Testing card, recorded 2026-11-20" in label for label in labels)
    assert "old.json is left out" in texts(at.warning)
    assert "Testing card wins" in texts(at.markdown)


def test_a_worker_that_dies_mid_race_leaves_its_heats():
    """The page says why it ended, and keeps the bars of what was measured."""

    def draw():
        from core.compare.results import RaceStarted
        from core.jobs.engine import Job
        from core.ui.compare import race
        from tests.compare.test_rows import RACE

        started = RaceStarted(RACE.candidates, RACE.config, RACE.steps, 3)
        events = (started, *RACE.trials[:5])
        lost = "The worker process ended while it was at it."
        job = Job("id", "path", (), "train", "", "failed", 0, events, None, lost)
        race.draw(job)

    at = AppTest.from_function(draw).run()
    assert not at.exception
    assert "The worker process ended" in texts(at.error)
    assert len(at.get("vega_lite_chart")) == 2
    assert not at.info  # no verdict on half a race


CURVE = RunConfig.with_recipe(task="regression", epochs=1)


@pytest.mark.parametrize("criterion", ["mse", "gaussian"])
def test_regression_is_trained_to_the_end(engine, criterion):
    """The address is enough; R², RMSE, the fit and the three moves are shown."""
    query = {"task": "regression", "criterion": criterion, "epochs": "2"}
    at = open_page("pages/3_Train.py", **query)
    assert not at.warning
    assert at.session_state.model == "simple"
    assert len(at.get("vega_lite_chart")) == 2  # the data, and empty axes
    at.button(key="start_training").click().run()
    run_id = at.session_state.run_id
    while not engine.job(run_id).ended:
        time.sleep(0.05)
    at.run()
    assert not at.exception
    result = engine.job(run_id).value
    shown = {metric.label: metric.value for metric in at.metric}
    assert shown["Test R²"] == f"{result.r2:.3f}"
    assert shown["Test RMSE"] == f"{result.rmse:.3f}"
    assert "Test accuracy" not in shown
    assert ("noise scale of" in texts(at.success)) == (criterion == "gaussian")
    fit, *_ = charts = at.get("vega_lite_chart")
    assert len(charts) == 4
    assert "without noise" in fit.proto.spec
    assert "people 83.5" not in str([chart.proto.spec for chart in charts])
    code = texts(at.code)
    assert "class SimpleRegressionNet" in code
    assert ("class GaussianLoss" in code) == (criterion == "gaussian")
    for line in ("model = ", "criterion = ", "inputs = ", "targets = "):
        assert re.search(rf"^ *{line}.*to\(device\)$", code, re.MULTILINE)
    assert "images" not in texts([*at.success, *at.caption])


def test_tasks_bring_what_fits_them():
    """To regression and back: every stop is a configuration that can be trained."""
    at = open_page("pages/3_Train.py", task="sprites", model="cnn", augment="true")
    for task in ("regression", "sprites", "regression", "fashion-mnist", "sprites"):
        at.get_by_key("task").set_value(task).run()
        assert not at.exception
        state = {
            field.name: at.session_state[field.name] for field in fields(RunConfig)
        }
        config = RunConfig(**state)
        assert config == RunConfig.with_recipe(task=task)
    assert at.get_by_key("model").options == ["ANN", "CNN"]


def test_between_image_tasks_the_settings_stay():
    """Another task that the model fits changes nothing else."""
    at = open_page("pages/3_Train.py", task="sprites", model="cnn", epochs="3")
    at.get_by_key("task").set_value("fashion-mnist").run()
    assert (at.session_state.model, at.session_state.epochs) == ("cnn", 3)


def test_what_does_not_fit_in_the_address_is_told():
    """A model for images in regression's address: a notice, and the one that fits."""
    at = open_page("pages/3_Train.py", task="regression", model="cnn", augment="1")
    assert not at.exception
    assert at.session_state.model == "simple"
    assert at.session_state.augment is False
    assert len(at.warning) == 2
    assert "model must be simple" in texts(at.warning)


@pytest.mark.parametrize("page", ["pages/4_Evaluate.py", "pages/7_Checkpoints.py"])
def test_regression_is_not_evaluated_as_images_are(engine, page):
    """A link with such a run says so, and the list of runs leaves it out."""
    images = finished_run(engine)
    numbers = finished_run(engine, CURVE)
    at = open_page(page, run=numbers)
    assert "predicts numbers" in texts(at.warning)
    listed = {each.id for each in runs.finished()}
    assert images in listed
    assert numbers not in listed
    assert at.query_params["run"] in listed


def test_losses_of_other_tasks_and_criteria_are_not_compared(monkeypatch, engine):
    """On a run's chart are the visitor's earlier ones whose loss is the same figure."""
    monkeypatch.setattr(Engine, "_dispatch", lambda _: None)  # they need not be trained
    gaussian = replace(CURVE, criterion="gaussian")
    sprites = replace(SHORT, batch_size=512)
    configs = [CURVE, sprites, gaussian, CURVE, replace(SHORT, task="fashion-mnist")]
    ids = [engine.submit(runs.RUN, each, owner="me") for each in (*configs, CURVE)]
    for job_id in ids:
        engine.cancel(job_id)
    assert [each.id for each in runs.earlier(runs.run(ids[-1]))] == [ids[0], ids[3]]
    assert runs.earlier(runs.run(ids[4])) == []


@pytest.mark.parametrize("key", ["race_task", "race_model", "profiled_model"])
def test_compare_offers_only_what_it_can_measure(key):
    """Whatever task or model is chosen, the page is drawn to its end."""
    at = open_page("pages/5_Compare.py")
    for index in range(len(at.selectbox(key=key).options)):
        at.selectbox(key=key).select_index(index).run()
        assert not at.exception
        assert not at.warning


def drawn_climb(status: str, rungs: int, **state) -> AppTest:
    """The Speed page's climb, with its first rungs measured."""

    def draw(status, rungs):
        from dataclasses import replace

        from core.jobs.engine import Job
        from core.speed.ladder import Climb, Climbed
        from core.ui.speed import ladder
        from tests.compare.test_rows import CLIMBED

        wanted = Climb("sprites", "ann", "cpu", 3, 60_000)
        found = CLIMBED.results[:rungs]
        done = replace(CLIMBED, results=found) if status == "finished" else None
        assert done is None or isinstance(done, Climbed)
        job = Job("id", "path", (wanted, found[:1]), status=status, lane="train")
        ladder.climb(
            replace(job, events=(CLIMBED.limit, *found[1:]), value=done), "CPU"
        )

    at = AppTest.from_function(draw, kwargs={"status": status, "rungs": rungs})
    for name, value in state.items():
        at.session_state[name] = value
    at.run()
    assert not at.exception
    return at


def test_a_rung_shows_its_figures_once_the_learner_has_guessed():
    """Until then neither table nor text tells; a wrong guess is told from a right."""
    at = drawn_climb("running", 3, ladder_rung="Two loader workers")
    assert "0.50 times as fast" not in texts(at.info)
    assert "Guess, and it shows" in texts(at.markdown)
    assert list(at.dataframe[0].value["Rung"]) == ["The textbook loop"]
    at.radio(key="guess_two_workers").set_value("Slower").run()
    assert "0.50 times as fast" in texts(at.success)
    assert "You guessed right" in texts(at.success)
    assert len(at.dataframe[0].value) == 2
    assert "taken back" in texts(at.markdown)
    at.radio(key="guess_two_workers").set_value("More than that").run()
    assert "You guessed: more than that." in texts(at.info)


def test_without_the_textbook_the_others_have_their_figures():
    """A rung that nothing can be compared with shows what it took, and no verdict."""

    def draw():
        from dataclasses import replace

        from core.jobs.engine import Job
        from core.speed.ladder import Climb, Result
        from core.ui.speed import ladder
        from tests.compare.test_rows import CLIMBED

        wanted = Climb("sprites", "ann", "cpu", 3, 60_000)
        failed = [Result(r.rung, "", message="It broke.") for r in CLIMBED.results[:4]]
        alone = replace(CLIMBED.results[4], base="", base_seconds=())
        results = (*failed, alone, *CLIMBED.results[5:])
        done = replace(CLIMBED, results=results)
        job = Job("id", "path", (wanted, ()), status="finished", lane="train")
        ladder.climb(replace(job, value=done), "CPU")

    at = AppTest.from_function(draw)
    at.session_state["ladder_show_all"] = True
    at.session_state["ladder_rung"] = "Decode once"
    at.run()
    assert not at.exception
    assert {"Epoch", "Test accuracy"} <= {metric.label for metric in at.metric}
    assert "is the best rung" in texts(at.success)
    assert "textbook" not in texts(at.success)
    assert "times as fast" not in texts(at.info)
    assert set(at.dataframe[0].value["× textbook"]) == {""}


def test_all_results_show_for_whoever_does_not_want_to_guess():
    """One switch; the best rung is named, with its distance to the limit."""
    at = drawn_climb("finished", 14)
    assert "results wait for your guess" in texts(at.info)
    at.toggle(key="ladder_show_all").set_value(True).run()
    assert "is the best rung" in texts(at.success)
    assert "measured limit for float32" in texts(at.success)  # no other was measured
    measured = 8
    assert len(at.dataframe[0].value) == measured


@pytest.mark.parametrize(
    ("rung", "said"),
    [
        ("Pinned memory", "there is none"),
        ("One CUDA graph", "NVIDIA or AMD"),
        ("The textbook loop", "nothing to guess"),
    ],
)
def test_a_rung_that_does_not_apply_says_why(rung, said):
    """And asks for no guess."""
    at = drawn_climb("finished", 14, ladder_rung=rung)
    assert said in texts(at.info) + texts(at.markdown)
    assert not at.radio


def test_a_rung_that_failed_is_a_sentence():
    """With the reason, and without a guess that could be wrong."""
    at = drawn_climb("finished", 14, ladder_rung="torch.compile")
    assert "no compiler" in texts(at.error)


def test_a_cancelled_climb_keeps_its_rungs():
    """What was measured stays on the page."""
    at = drawn_climb("cancelled", 3, ladder_show_all=True)
    assert "Cancelled after 3 of 14 rungs" in texts(at.info)
    assert len(at.dataframe[0].value) == 3


def test_a_climb_is_started_cancelled_and_resumed(engine):
    """Resuming hands over what was measured; another model begins anew."""
    path = "core.speed.climb:climb"
    at = open_page("pages/6_Speed.py")
    at.selectbox(key="ladder_task").set_value("sprites").run()
    at.number_input(key="ladder_epochs_ann").set_value(1).run()
    at.button(key="run_ladder").click().run()
    assert not at.exception
    (job,) = engine.jobs(path)
    deadline = time.monotonic() + 60
    while len([e for e in engine.job(job.id).events if isinstance(e, Result)]) < 1:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    at.run()
    at.button(key="cancel_ladder").click().run()
    while not engine.job(job.id).ended:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    at.run()
    assert not at.exception
    assert "can be resumed" in texts(at.info)
    assert at.button(key="run_ladder").label == "Resume the climb"
    at.selectbox(key="ladder_model").set_value("cnn").run()
    assert at.button(key="run_ladder").label == "Climb the ladder"
    at.selectbox(key="ladder_model").set_value("ann").run()
    at.button(key="run_ladder").click().run()
    _, again = engine.jobs(path)
    assert again.arguments[1][0].rung == "textbook"
    engine.cancel(again.id)
    while not engine.job(again.id).ended:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_an_impossible_climb_is_not_started():
    """A sentence says what is wrong, and the button waits."""
    at = open_page("pages/6_Speed.py")
    at.number_input(key="ladder_epochs_ann").set_value(0).run()
    assert "Epochs must be from 1 to 10, not 0." in texts(at.warning)
    assert at.button(key="run_ladder").disabled
