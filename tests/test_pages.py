"""Every page, walked through with AppTest against a real engine."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.config import RunConfig
from core.engine import ROOT, Engine
from core.ui import answers, dataset, runs
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


def test_an_unknown_run_is_a_sentence():
    """A link to a run that this server does not know says so."""
    for page in PAGES:
        assert "does not know that run" in texts(
            open_page(page, run="nosuchrun").warning
        )


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
    assert len(at.get("image")) == answers.PICTURES


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
    assert len(at.get("vega_lite_chart")) == 2


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
    assert "No run has finished" in texts(at.markdown)
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
    assert engine.ask("core.child:call", "core.child:nothing") is None


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
