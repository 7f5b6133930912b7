import pytest
from streamlit.testing.v1 import AppTest

from core.jobs.job import Stored
from core.ui import runs
from tests.app.pages.walk import metrics, open_page, open_tab, press, texts, wait


def open_checkpoints(run_id: str, tab: str = "Save") -> AppTest:
    return open_page("pages/6_Checkpoints.py", run=run_id, tab=tab)


def upload(at: AppTest, content: bytes, name: str = "model.pt") -> AppTest:
    file = (name, content, "application/octet-stream")
    at.file_uploader(key="upload_checkpoint").set_value(file)
    return at.run()


def test_checkpoints_without_a_run(monkeypatch):
    """Before any run has finished, the page says how to get one, and loads files.

    What is in a file is shown all the same, of a model that was not trained.
    """
    monkeypatch.setattr(runs, "finished", list)
    at = open_page("pages/6_Checkpoints.py")
    assert at.file_uploader(key="upload_checkpoint")
    assert not at.download_button
    assert "untrained" in texts(at.markdown)
    assert at.dataframe[0].value["Bytes"].sum() == 4 * 109_386


def test_a_checkpoint_is_described_and_downloaded(engine, run_id):
    at = open_checkpoints(run_id)
    result = engine.job(run_id).value
    assert f"6 tensors with {result.parameters:,} values" in texts(at.markdown)
    table = at.dataframe[0].value
    assert table["Bytes"].sum() == 4 * result.parameters
    keys = {button.key for button in at.download_button}
    assert keys == {"download_pt", "download_safetensors"}
    open_tab(at, "Take it home")
    keys = {button.key for button in at.download_button}
    assert keys == {"download_script", "download_notebook", "download_drawing"}
    assert "python -m core.run --task sprites" in texts(at.code)


def test_an_upload_evaluates_to_its_accuracy(engine, run_id):
    result = engine.job(run_id).value
    at = upload(open_checkpoints(run_id), engine.read(Stored(run_id)))
    (told,) = at.success
    assert "ANN" in told.value
    at.button(key="evaluate_upload").click().run()
    assert metrics(at)["Test accuracy"] == f"{result.test_accuracy:.2%}"
    assert not at.exception


def test_a_bad_upload_is_one_sentence(engine, run_id):
    at = upload(open_checkpoints(run_id), b"PK\x03\x04 and no more")
    assert not at.exception
    assert "truncated" in texts(at.error)
    assert len(at.error) == 1
    assert engine.ask("core.jobs.child_process:call", "os:getpid")  # others still open


def test_a_file_of_another_model_is_listed(run_id, engine):
    at = open_checkpoints(run_id)
    at.selectbox(key="upload_model").set_value("cnn")
    upload(at, engine.read(Stored(run_id)))
    assert "26 missing, 6 unexpected" in texts(at.error)
    columns = [str(table.value.columns[0]) for table in at.dataframe]
    assert any(column.startswith("Missing") for column in columns)
    assert any(column.startswith("Unexpected") for column in columns)


@pytest.mark.parametrize("saved_on", ["cpu", "sim"])
def test_a_round_trip_is_exact_here(engine, run_id, saved_on):
    at = open_checkpoints(run_id, "Round trip")
    if saved_on == "sim":
        if not engine.machine().simulates:
            pytest.skip("a real accelerator")
        assert "sim:0" in texts(at.code)
        assert "CUDA" in texts(at.code)
        assert "`cpu`" in texts(at.success)
    at.selectbox(key="save_on").set_value(saved_on)
    at.selectbox(key="load_on").set_value("cpu")
    told = len(at.success)
    press(at, engine, "round_trip", "core.lessons.checkpoints.round_trip:measure")
    assert "0 of 20,000" in metrics(at).values()
    assert len(at.success) == told + 1


def test_resuming_is_shown_beside_training_through(engine, run_id):
    at = open_checkpoints(run_id, "Round trip")
    at.number_input(key="resume_epochs").set_value(1)
    press(at, engine, "resume", "core.lessons.checkpoints.resume:compare")
    figures = metrics(at)
    assert float(figures["With the weights alone"]) > 0
    assert len(at.get("vega_lite_chart")) == 1
    if engine.machine().devices[0].backend == "CPU":
        assert figures["Greatest difference"] == "0"
        assert at.success[-1].value.startswith("**")


def test_what_can_go_wrong_is_tried(engine):
    at = open_page("pages/6_Checkpoints.py", tab="What can go wrong")
    before = len(at.code)
    at.button(key="run_mistake_pickle_refused").click().run()
    wait(engine, engine.jobs("core.lessons.mistakes.runner:run")[-1].id)
    at.run()
    assert not at.exception
    assert len(at.code) > before
    assert "core.config.RunConfig" in texts(at.code)
    assert len(at.error) == 1
    assert len(at.success) == 1
