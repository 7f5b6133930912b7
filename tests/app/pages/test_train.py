import json
import re
from dataclasses import fields, replace

import pytest
from streamlit.testing.v1 import AppTest

from core.config import RANGES, RunConfig
from core.data.fashion_mnist import DatasetStatus
from core.jobs.engine import Engine
from core.lessons.mistakes.catalogue import BY_SLUG
from core.lessons.train import controls_page as controls
from core.lessons.train import dataset_page as dataset
from core.lessons.train.fit_page import TRUTH
from core.registry import RUN
from core.runs.comparison import UNTIMED
from core.runs.loss_chart import REFERENCES
from core.store import export
from core.ui import format, runs, server
from tests.app.jobs.follow import LONG
from tests.app.pages.walk import (
    CURVE,
    HOSTILE,
    SHORT,
    drawn,
    finish,
    finished_run,
    metrics,
    open_page,
    open_tab,
    outside_code,
    status,
    texts,
    wait,
)
from tests.app.store.made_up import begin, finished

TIME = re.compile(r'"(?:seconds|samples_per_second)": [^n]')


def test_controls_say_the_same_after_another_page():
    at = open_page("pages/3_Train.py", task="sprites")
    at.number_input(key="epochs").set_value(7).run()
    at.switch_page("pages/7_Compare.py").run()
    at.selectbox(key="race_model").set_value("cnn").run()
    at.number_input(key="race_batch_cnn").set_value(80).run()
    at.switch_page("pages/3_Train.py").run()
    assert at.number_input(key="epochs").value == 7
    at.switch_page("pages/7_Compare.py").run()
    assert at.selectbox(key="race_model").value == "cnn"
    assert at.number_input(key="race_batch_cnn").value == 80


@pytest.mark.usefixtures("engine")
def test_a_failed_run_leads_to_the_search_and_to_four_mistakes():
    store, run_id = server.store(), "a failed run"
    begin(store, run_id, SHORT)
    store.writer.wait(store.runs.end(run_id, "failed", message="RuntimeError: no"))
    at = open_page("pages/3_Train.py", run=run_id)
    assert "RuntimeError: no" in texts(at.error)
    links = [link.proto for link in at.get("page_link")]
    links = [link for link in links if link.page.endswith("Mistakes")]
    slugs = [link.query_string.partition("=")[2] for link in links]
    assert "" in slugs
    slugs = [slug for slug in slugs if slug]
    assert len(slugs) == 4
    assert set(slugs) < set(BY_SLUG)


@pytest.mark.parametrize("first", range(0, len(HOSTILE), 5))
def test_bad_values_in_the_address_are_shown_letter_by_letter(first):
    some = HOSTILE[first : first + 5]
    names = ("task", "model", "epochs", "learning_rate", "host")
    at = open_page("pages/3_Train.py", **dict(zip(names, some, strict=False)))
    assert len(at.warning) == len(some)
    assert "evil" not in outside_code(at)
    assert max(len(warning.value) for warning in at.warning) < 250
    at = open_page("pages/3_Train.py", **dict.fromkeys(some, "1"))
    assert "evil" not in outside_code(at)


def test_start_trains_to_the_end(engine):
    at = open_page("pages/3_Train.py", task="sprites", epochs="1", batch_size="256")
    at.button(key="start_training").click().run()
    run_id = at.session_state.run_id
    finish(at, engine, run_id)
    accuracy = f"{engine.job(run_id).value.test_accuracy:.2%}"
    assert accuracy in status(at)
    # The next run like it says beforehand how long it will take.
    expected = engine.expected_seconds(RUN, engine.job(run_id).arguments[0])
    assert expected > 0
    assert format.roughly(expected) in texts(at.caption)
    assert at.query_params["run"] == run_id
    assert len(at.get("vega_lite_chart")) == 3
    for key, tab, tried in (
        ("code_The loop", "The batches", "try_orders"),
        ("code_The loop", "The batches", "try_sizes"),
        ("code_The model", "The criterion", "try_one_kind"),
    ):
        before = len(open_tab(at, tab, key).markdown)
        drawn(at.button(key=tried).click().run())
        assert len(at.markdown) == before + 1
        assert not at.error
    open_tab(at, "The whole script", "code_The model")
    at.button(key="try_textbook_sprites").click().run()
    assert " of 2,000)" in texts(at.code)
    open_tab(at, True, "take_home")
    keys = {button.key for button in at.download_button}
    assert keys == {"download_script", "download_notebook", "download_drawing"}


@pytest.mark.usefixtures("somebody")
def test_on_the_simulated_accelerator_crossings_are_counted_and_nothing_timed(engine):
    if not engine.machine().simulates:
        pytest.skip("a real accelerator")
    query = {"task": "sprites", "epochs": "1", "batch_size": "256", "device": "sim"}
    at = open_page("pages/3_Train.py", **query, item_each_step="true")
    open_tab(at, True, controls.OPEN)
    assert at.selectbox(key="device").options[-1] == "Simulated accelerator"
    at.button(key="start_training").click().run()
    run_id = at.session_state.run_id
    finish(at, engine, run_id)
    assert f"{engine.job(run_id).value.test_accuracy:.2%}" in status(at)
    groups = [group.proto.options for group in at.get("button_group")]
    assert ["Step", "Epoch"] in [[option.content for option in g] for g in groups]
    figures = metrics(at)
    assert {"To the device", "Back to the host", "Waits by the host"} <= set(figures)
    assert not {"Samples/s", "Total time"} & set(figures)
    for line in ("inputs = inputs.to(device)", "loss.item()"):
        assert line in texts(at.markdown)
    assert float(figures["Waits by the host"]) >= 3
    exported = json.loads(
        export.runs_json(server.store(), [runs.summary(runs.run(run_id))])
    )
    assert TIME.findall(json.dumps(exported)) == []

    at = open_page("pages/10_Runs.py", run=run_id)
    assert UNTIMED in texts(at.markdown)
    assert list(at.dataframe[0].value["seconds"].dropna()) == []
    assert set(at.dataframe[0].value["device"]) == {"Simulated accelerator"}


def test_an_impossible_setting_starts_nothing(engine):
    before = len(engine.jobs("core.training:run"))
    at = open_page("pages/3_Train.py", task="sprites")
    open_tab(at, True, controls.OPEN)
    wrong = {"epochs": 2.5, "batch_size": 0, "learning_rate": 0.0, "seed": 1e30}
    for name, value in wrong.items():
        at.number_input(key=name).set_value(value)
    at.button(key="start_training").click().run()
    for value in wrong.values():
        assert f"`{value}`" in texts(at.warning)
    assert at.button(key="start_training").disabled
    assert len(engine.jobs("core.training:run")) == before
    for name in wrong:
        at.number_input(key=name).set_value(64)
    at.run()
    assert not at.warning
    assert not at.button(key="start_training").disabled


def settings_of(at: AppTest) -> RunConfig:
    """The configuration that the controls of the Train page show."""
    figures = {field.name: at.session_state[field.name] for field in fields(RunConfig)}
    # Fields for whole numbers take others too, which the page then refuses.
    return RunConfig(**figures | {name: int(figures[name]) for name in RANGES})


def specs(at: AppTest) -> str:
    """The specifications of all charts."""
    return str([chart.proto.spec for chart in at.get("vega_lite_chart")])


def test_the_controls_show_the_settings_of_the_run_that_is_shown(engine):
    config = RunConfig(task="sprites", model="cnn", epochs=1, batch_size=512, seed=3)
    run_id = finished_run(engine, config)
    at = open_page("pages/3_Train.py", run=run_id)
    assert settings_of(at) == config
    accuracy = f"{engine.job(run_id).value.test_accuracy:.2%}"
    assert accuracy in status(at)
    assert "use_settings" not in {button.key for button in at.button}
    at.number_input(key="epochs").set_value(9).run()
    assert at.session_state.epochs == 9
    at.button(key="use_settings").click().run()
    assert settings_of(at) == config
    # Another task's page shows no run of this task.
    at.get_by_key("task").set_value("regression").run()
    assert accuracy not in status(at)
    assert "run" not in at.query_params
    assert at.session_state.task == "regression"
    at.get_by_key("task").set_value("sprites").run()
    assert accuracy in status(at)


def test_a_run_that_waits_has_a_name(engine, monkeypatch):
    monkeypatch.setattr(Engine, "paused", True)
    run_id = engine.submit(runs.RUN, SHORT)
    at = open_page("pages/3_Train.py", run=run_id)
    assert str(engine.job(run_id).place) in status(at)
    assert re.search(r"\*\*Run \d+\*\* · Sprites", texts(at.markdown))
    engine.cancel(run_id)


def test_the_fast_setting_is_set_and_taken_back():
    at = open_page("pages/3_Train.py", task="sprites", seed="7")
    use_it = at.button(key="fast_setting").label
    at.button(key="fast_setting").click().run()
    take_it_back = at.button(key="fast_setting").label
    assert take_it_back != use_it
    fast = RunConfig.with_recipe(task="sprites", seed=7, fast=True)
    assert settings_of(at) == fast
    at.number_input(key="epochs").set_value(fast.epochs + 1).run()
    assert at.button(key="fast_setting").label == use_it
    at.button(key="fast_setting").click().run()
    at.get_by_key("model").set_value("cnn").run()
    assert settings_of(at) == RunConfig.with_recipe(
        task="sprites", seed=7, model="cnn", fast=True
    )
    assert at.button(key="fast_setting").label == take_it_back
    at.button(key="fast_setting").click().run()
    assert settings_of(at) == RunConfig.with_recipe(task="sprites", seed=7, model="cnn")
    at.get_by_key("model").set_value("ann").run()
    assert settings_of(at) == RunConfig.with_recipe(task="sprites", seed=7)


def test_the_address_presets_a_recipe_and_the_fast_setting():
    at = open_page("pages/3_Train.py", task="sprites", model="cnn", fast="1")
    cnn = RunConfig.with_recipe(task="sprites", model="cnn", fast=True)
    assert (settings_of(at), len(at.warning)) == (cnn, 0)
    at = open_page("pages/3_Train.py", task="regression", fast="1")
    assert settings_of(at) == RunConfig.with_recipe(task="regression")
    assert len(at.warning) == 1
    assert "fast_setting" not in {button.key for button in at.button}


def has(monkeypatch, status: DatasetStatus) -> None:
    """Give the machine Fashion-MNIST in that state."""
    machine = Engine.machine
    monkeypatch.setattr(
        Engine, "machine", lambda self: replace(machine(self), fashion_mnist=status)
    )


@pytest.mark.parametrize(
    ("problem", "source"), [(None, None), ("train-labels was altered.", "/data")]
)
def test_without_the_data_the_app_trains_on_sprites(monkeypatch, problem, source):
    has(monkeypatch, DatasetStatus(source, problem))
    at = open_page("pages/3_Train.py")
    assert at.session_state.task == "sprites"
    assert at.button(key="fetch_data")
    assert (problem or "") in texts(at.error)
    assert bool(at.error) == bool(problem)
    assert bool(at.info) == (not problem)


@pytest.fixture
def no_data(monkeypatch):
    has(monkeypatch, DatasetStatus())


@pytest.mark.usefixtures("no_data")
def test_a_failed_download_is_shown_as_failed(monkeypatch, engine):
    # Any job that fails will do; tests of core.data.fashion_mnist fail the real one.
    monkeypatch.setattr(dataset, "FETCH", "core.devices:resolve")
    at = open_page("pages/3_Train.py")
    at.button(key="fetch_data").click().run()
    wait(engine, engine.jobs(dataset.FETCH)[-1].id)
    at.run()
    assert len(at.error) == 1
    assert at.button(key="fetch_data")


@pytest.mark.usefixtures("no_data")
def test_a_download_is_cancelled_also_after_a_reload(monkeypatch, engine, somebody):
    # Any job that goes on will do.
    monkeypatch.setattr(dataset, "FETCH", "tests.app.pages.walk:until_cancelled")
    open_page("pages/3_Train.py").button(key="fetch_data").click().run()
    (job,) = engine.jobs(dataset.FETCH, somebody)
    wait(engine, job.id, lambda now: now.status == "running")
    at = open_page("pages/3_Train.py")  # a new session
    with monkeypatch.context() as patch:
        patch.setattr(dataset, "visitor", lambda: "somebody else")
        other = open_page("pages/3_Train.py")
    keys = {button.key for button in other.button}
    assert not keys & {"cancel_fetch", "fetch_data"}
    at.button(key="cancel_fetch").click().run()
    assert wait(engine, job.id).status == "cancelled"
    at.run()
    assert not at.error
    assert at.button(key="fetch_data")


def test_a_second_press_shows_the_run_of_the_first(engine, somebody):
    at = open_page("pages/3_Train.py", run=finished_run(engine, CURVE))
    long = RunConfig.with_recipe(task="regression", epochs=200, batch_size=4)
    first = engine.submit(runs.RUN, long, owner=somebody)
    at.button(key="start_training").click().run()
    assert at.query_params["run"] == first
    assert len(at.warning) == 1
    assert engine.jobs(runs.RUN, somebody)[-1].id == first
    engine.cancel(first)
    wait(engine, first)


def test_what_a_browser_sends_late_does_not_bring_back_the_run_before(
    engine, monkeypatch
):
    before = finished_run(engine, CURVE)
    monkeypatch.setattr(Engine, "paused", True)
    at = open_page("pages/3_Train.py", run=before)
    at.button(key="start_training").click().run()
    started = at.query_params["run"]
    assert started != before
    at.query_params["run"] = before
    at.run()
    assert at.query_params["run"] == started
    monkeypatch.setattr(controls, "LATE_SECONDS", 0.0)
    at.query_params["run"] = before  # an address that somebody opens
    at.run()
    assert at.query_params["run"] == before
    assert any(started in link.proto.query_string for link in at.get("page_link"))
    engine.cancel(started)


def test_settings_stay_where_another_tab_has_started_a_run(
    engine, monkeypatch, somebody
):
    monkeypatch.setattr(Engine, "paused", True)
    mine, untouched = (open_page("pages/3_Train.py", task="sprites") for _ in range(2))
    mine.number_input(key="batch_size").set_value(77).run()
    run_id = engine.submit(runs.RUN, SHORT, owner=somebody)
    for at, size in ((mine, 77), (untouched, SHORT.batch_size)):
        at.run()
        assert at.query_params["run"] == run_id
        assert at.number_input(key="batch_size").value == size
        assert bool(at.warning) == (at is mine)
    engine.cancel(run_id)


@pytest.mark.parametrize("page", ["home.py", "pages/3_Train.py"])
def test_a_run_is_steered_while_it_trains_and_says_so_ever_after(
    engine, somebody, page
):
    run_id = engine.submit(runs.RUN, LONG, owner=somebody)
    wait(engine, run_id, lambda job: job.progress.latest)
    at = open_page(page)
    if page != "home.py":
        assert not at.select_slider
        at.toggle(key="steer_it").set_value(True).run()
    (slider,) = at.select_slider
    assert (slider.value, len(slider.options)) == (LONG.learning_rate, 9)
    slider.set_value(0.003).run()
    wait(engine, run_id, lambda job: job.progress.changes)
    at.button(key="steer_pause").click().run()
    wait(engine, run_id, lambda job: job.progress.pause)
    paused = at.run().button(key="steer_pause").label
    at.button(key="steer_pause").click().run()
    wait(engine, run_id, lambda job: not job.progress.pause.is_on)
    assert at.run().button(key="steer_pause").label != paused
    # Another tab moves it: the slider here follows.
    engine.steer(run_id, somebody, learning_rate=0.0003)
    at.run()
    assert at.select_slider[0].value == 0.0003
    engine.cancel(run_id)
    wait(engine, run_id)
    at = open_page("pages/3_Train.py", run=run_id)
    assert not at.select_slider
    assert "0.003" in texts(at.markdown)


def test_somebody_elses_run_cant_be_steered(engine):
    run_id = engine.submit(runs.RUN, LONG)
    wait(engine, run_id, lambda job: job.progress.latest)
    at = open_page("pages/3_Train.py", run=run_id)
    at.toggle(key="steer_it").set_value(True).run()
    assert not at.select_slider
    engine.cancel(run_id)
    wait(engine, run_id)


@pytest.mark.parametrize("criterion", ["mse", "gaussian"])
def test_regression_is_trained_to_the_end(engine, criterion):
    query = {"task": "regression", "criterion": criterion, "epochs": "2"}
    at = open_page("pages/3_Train.py", **query)
    assert (len(at.warning), at.session_state.model) == (0, "simple")
    assert TRUTH in specs(at)  # the data, and what there is to learn
    at.button(key="start_training").click().run()
    run_id = at.session_state.run_id
    finish(at, engine, run_id)
    result = engine.job(run_id).value
    figures = metrics(at)
    assert figures["Test R²"] == f"{result.r2:.3f}"
    assert figures["Test RMSE"] == f"{result.rmse:.3f}"
    assert "Test accuracy" not in figures
    assert len(at.get("vega_lite_chart")) == 4
    assert TRUTH in specs(at)
    assert all(name not in specs(at) for name in REFERENCES)  # those are of images
    code = ""
    for tab in ("The model", "The criterion"):  # the tab of the moves is open
        code += texts(open_tab(at, tab, "code_The model").code)
    assert "class SimpleRegressionNet" in code
    assert ("class GaussianLoss" in code) == (criterion == "gaussian")
    for line in ("model = ", "criterion = ", "inputs = ", "targets = "):
        assert re.search(rf"^ *(self\.)?{line}.*to\(device\)$", code, re.MULTILINE)
    assert "images" not in status(at) + texts(at.caption)


def test_tasks_bring_what_fits_them():
    query = {"task": "sprites", "model": "cnn", "augment": "true", "epochs": "3"}
    at = open_page("pages/3_Train.py", **query)
    at.get_by_key("task").set_value("fashion-mnist").run()
    assert (at.session_state.model, at.session_state.epochs) == ("cnn", 3)
    at.button(key="fast_setting").click().run()
    for task in ("regression", "sprites", "regression", "fashion-mnist", "sprites"):
        at.get_by_key("task").set_value(task).run()
        assert not at.exception
        assert settings_of(at) == RunConfig.with_recipe(task=task)
    assert at.get_by_key("model").options == ["ANN", "CNN"]


@pytest.mark.usefixtures("engine")
def test_losses_of_other_tasks_and_criteria_are_not_compared(somebody):
    store = server.store()
    settings = [CURVE, SHORT, replace(CURVE, criterion="gaussian"), CURVE, CURVE]
    ids = [f"{somebody} {number}" for number in range(len(settings))]
    for run_id, config in zip(ids, settings, strict=True):
        finished(store, run_id, somebody, **vars(config))
    store.writer.flush()

    def compared(run_id: str, most: int = 4) -> list[str]:
        return [run.id for run in runs.earlier(runs.run(run_id), most)]

    assert compared(ids[4]) == [ids[0], ids[3]]
    assert compared(ids[4], most=1) == [ids[3]]
    assert compared(ids[1]) == compared(ids[2]) == []
    assert runs.newest(somebody) == ids[4]
