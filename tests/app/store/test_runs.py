import math
from dataclasses import replace

import pytest
from sqlalchemy import select, update

from core.config import RunConfig
from core.store.codec import DamagedError
from core.store.tables import Checkpoint, Curve, EpochOfRun, RunSummary
from tests.app.store.made_up import (
    CONFIG,
    HISTORY,
    LOSSES,
    RESULT,
    STARTED,
    begin,
    finished,
    queue,
    summary,
)
from tests.figures import figures


def test_a_run_that_was_going_on_is_interrupted_and_keeps_what_it_had(url, open_store):
    store = open_store(url)
    begin(store, "a")
    store.runs.started("a", STARTED)
    store.runs.epoch("a", HISTORY[0])
    store.runs.progress("a", 50, LOSSES[:50])
    store.runs.progress("a", 64, LOSSES[50:64])
    store.close()
    store = open_store(url)
    assert store.runs.recover() == []
    run = store.runs.get("a")
    assert run.summary.status == "interrupted"
    assert figures(run.summary.message) == ["64", "100"]
    assert (run.progress.history, run.progress.losses) == (HISTORY[:1], LOSSES[:64])
    assert (run.progress.started, run.value) == (STARTED, None)
    store.runs.end("a", "finished", RESULT)  # too late
    store.writer.flush()
    assert store.runs.get("a").value is None


def test_a_waiting_row_that_can_not_be_read_has_failed(store):
    queue(store, "old")
    queue(store, "new")
    damage = update(RunSummary).where(RunSummary.id == "old").values(arguments="{")
    store.writer.write(lambda session: session.execute(damage))
    assert [run.summary.id for run in store.runs.recover()] == ["new"]
    store.writer.flush()
    (old,) = store.runs.find(status="failed")
    assert old.message == str(DamagedError("This run"))
    with pytest.raises(DamagedError):
        store.runs.get("old")


def test_a_run_that_diverged_keeps_a_loss_that_is_no_number(store):
    begin(store, "a")
    store.runs.epoch("a", replace(HISTORY[0], loss=math.nan, test_loss=math.inf))
    store.writer.flush()
    (epoch,) = store.runs.get("a").progress.history
    assert math.isnan(epoch.loss)
    assert epoch.test_loss == math.inf


def test_a_regression_keeps_its_fit_once(store):
    config = RunConfig.with_recipe(task="regression")
    history = (replace(HISTORY[0], test_accuracy=None, test_r2=0.9, test_rmse=0.2),)
    result = replace(RESULT, config=config, test_correct=None, history=history)
    begin(store, "a", config)
    store.runs.progress("a", 100, LOSSES, result.fit)
    store.writer.flush()
    assert store.runs.get("a").progress.fit == result.fit
    store.runs.end("a", "finished", result)
    store.writer.flush()
    run = store.runs.get("a")
    assert (run.value, run.progress.fit) == (result, None)
    assert (run.summary.r2, run.summary.accuracy) == (0.9, None)


def test_a_list_has_the_newest_first(store):
    for run_id, visitor, task in (
        ("a", "me", "sprites"),
        ("b", "you", "sprites"),
        ("c", "me", "fashion-mnist"),
    ):
        finished(store, run_id, visitor, task=task)
    store.writer.flush()

    def ids(*arguments, **more):
        return [run.id for run in store.runs.find(*arguments, **more)]

    assert ids() == ["c", "b", "a"]
    assert ids("me") == ["c", "a"]
    assert ids(task="sprites", limit=1) == ["b"]
    assert store.runs.hide(["a"], "me")
    assert ids("me") == ["c"]
    assert ids("me", hidden=True) == ["c", "a"]


def test_a_setting_that_is_newer_than_a_run_has_its_default():
    run = summary(batch_size=7)
    del run.settings["non_blocking"]
    assert (run.batch_size, run.non_blocking) == (7, RunConfig.non_blocking)


def test_a_job_that_is_no_training_run_has_no_settings(store):
    queue(store, "a", "me", CONFIG, 3)
    (run,) = store.runs.find()
    assert run.settings is run.task is None


def test_only_their_visitor_changes_runs(store):
    finished(store, "a", "me")
    assert not store.runs.rename("a", "you", "mine")
    assert not store.runs.hide(["a"], "you")
    assert not store.runs.delete(["a"], "you")
    assert store.runs.rename("a", "me", "  the good\none " + "x" * 100)
    name = store.runs.get("a").summary.name
    assert name.startswith("the good one xxx")
    assert len(name) == 80
    assert store.runs.delete(["a"], "me")
    assert store.runs.get("a") is None
    assert not store.runs.delete(["a"], "me")


def test_reports_of_a_deleted_run_change_nothing(store):
    begin(store, "a")
    store.runs.delete(["a"], "me")
    store.runs.started("a", STARTED)
    store.runs.progress("a", 50, LOSSES[:50])
    store.runs.epoch("a", HISTORY[0])
    store.runs.end("a", "finished", RESULT)
    finished(store, "b")
    store.writer.flush()
    assert [run.id for run in store.runs.find()] == ["b"]
    for table in (EpochOfRun, Curve, Checkpoint):
        assert set(store.runs.read(select(table.run_id))) == {"b"}


def test_a_result_that_is_no_plain_data_leaves_the_run_finished(store):
    queue(store, "a")
    store.runs.end("a", "finished", object())
    store.writer.flush()
    run = store.runs.get("a")
    assert (run.summary.status, run.value) == ("finished", None)


@pytest.mark.parametrize(
    "text", ["a\0b", "\ud800", "'; DROP TABLE runs; --", "💥" * 99]
)
def test_any_text_is_taken_as_a_name_a_message_and_an_id(store, text):
    assert store.runs.get(text) is None
    assert store.runs.checkpoint(text) is None
    finished(store, "a")
    assert store.runs.rename("a", "me", text)
    queue(store, "b", "me", CONFIG, text)
    store.runs.end("b", "failed", message=text)
    store.writer.flush()
    assert store.runs.get("b").summary.status == "failed"
    assert store.runs.get("b").arguments == (CONFIG, text)
