"""Every page, walked through with AppTest against a real engine."""

import io
import re
import subprocess
import sys
import time
from dataclasses import fields, replace
from pathlib import Path

import pytest
from PIL import Image, ImageDraw
from streamlit.testing.v1 import AppTest

from core import reference
from core.config import RunConfig
from core.engine import ROOT, Engine
from core.errors import ExplainedError
from core.ui import answers, dataset, moves, runs, steps
from core.ui.course import LESSONS

PAGES = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("pages/*.py"))
SHORT = RunConfig(task="sprites", epochs=1, batch_size=256)


@pytest.fixture(autouse=True)
def machine_is_known(engine):
    """Pages are drawn as they are once the workers have said what is here."""
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
    # Any job that fails will do; tests of core.fashion_mnist fail the real one.
    monkeypatch.setattr(dataset, "FETCH", "core.device:resolve")
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
    assert len(at.get("image")) == answers.PICTURES + 1  # and the one to predict


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
engine().ask("core.device:describe", seconds=120)
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

    for name in (moves.findings, steps.batch):
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
    reference.write({**figures, "transfers": points}, tmp_path)
    damaged = {"date": "2026-11-20", "environment": {"device_name": "Cut card"}}
    reference.write({**damaged, "transfers": [{"bytes": 1}]}, tmp_path)
    found = reference.records(tmp_path)
    monkeypatch.setattr(reference, "records", lambda: found)

    def draw():
        from core.engine import Job
        from core.reports import Transfer
        from core.ui import transfers

        here = Transfer("host to host", "new memory", 4096, (1e-6,) * 5)
        transfers.draw(Job("id", "path", (), "train", events=(here,)))

    at = AppTest.from_function(draw).run()
    assert not at.exception
    (chart,) = at.get("vega_lite_chart")
    assert "facet" in chart.proto.spec
    assert "Testing card, recorded 2026-11-20" in chart.proto.spec
    assert "Cut card" in texts(at.warning)


def test_a_picture_is_predicted(engine):
    """A test image by its number, and a file; both end with ten probabilities."""
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
