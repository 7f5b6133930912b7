"""core.store.runs: what a restart finds of the queue and of runs."""

import math
from dataclasses import fields, replace

import pytest

from core.config import RunConfig
from core.jobs.job import ENDED
from core.store import tables
from core.store.codec import StoreError
from core.store.results import RunSummary
from core.store.runs import GOING_ON
from tests.store.made_up import (
    CONFIG,
    HISTORY,
    LOSSES,
    RESULT,
    RUN,
    STARTED,
    finished,
)


def test_a_finished_run_is_after_a_restart_as_it_was(url, open_store):
    """Curve, epochs, result and checkpoint to the last digit."""
    store = open_store(url)
    finished(store, "a")
    store.close()
    store = open_store(url)
    assert store.runs.recover() == []
    kept = store.runs.get("a")
    assert kept.value == RESULT
    assert kept.arguments == (CONFIG,)
    assert (kept.start, kept.history, kept.losses) == (STARTED, HISTORY, LOSSES)
    assert store.runs.checkpoint("a") == RESULT.checkpoint
    summary = kept.summary
    assert summary.config == CONFIG
    assert (summary.status, summary.accuracy, summary.seconds) == (
        "finished",
        0.8,
        10.5,
    )
    assert summary.submitted <= summary.started <= summary.ended


def test_what_waits_is_queued_again_in_its_order(url, open_store):
    """With the visitor, the lane and the round; what has ended is not."""
    store = open_store(url)
    pair = ("a race", CONFIG, 3, b"bytes")
    for run_id, lane, turn in (("c", "train", 2), ("a", "lab", 1), ("b", "train", 3)):
        assert store.runs.queue(run_id, "me", "core.x:y", pair, lane, turn)
    store.runs.queue("gone", "", RUN, (CONFIG,))
    store.runs.end("gone", "cancelled")
    store.close()
    found = open_store(url).runs.recover()
    assert [(each.id, each.lane, each.round) for each in found] == [
        ("c", "train", 2),
        ("a", "lab", 1),
        ("b", "train", 3),
    ]
    assert {(each.visitor, each.address, each.arguments) for each in found} == {
        ("me", "core.x:y", pair)
    }


def test_a_run_that_was_going_on_is_interrupted(url, open_store):
    """It says at which step, keeps what it had, and does not run a second time."""
    store = open_store(url)
    store.runs.queue("a", "me", RUN, (CONFIG,))
    store.runs.begin("a")
    store.runs.started("a", STARTED)
    store.runs.epoch("a", HISTORY[0])
    store.runs.progress("a", 50, LOSSES[:50])
    store.runs.progress("a", 64, LOSSES[50:64])
    store.close()
    store = open_store(url)
    assert store.runs.recover() == []
    kept = store.runs.get("a")
    assert kept.summary.status == "interrupted"
    assert "at step 64 of 100" in kept.summary.message
    assert (kept.history, kept.losses) == (HISTORY[:1], LOSSES[:64])
    assert (kept.start, kept.value) == (STARTED, None)
    store.runs.end("a", "finished", RESULT)  # too late
    store.writer.flush()
    assert store.runs.get("a").value is None


def test_a_row_of_the_queue_that_can_not_be_read_has_failed(store):
    """The app starts, the others run, and the visitor is told."""
    store.runs.queue("old", "me", RUN, (CONFIG,))
    store.runs.queue("new", "me", RUN, (CONFIG,))
    damage = tables.runs.update().where(tables.runs.c.id == "old")
    store.writer.write(lambda each: each.execute(damage.values(arguments="{")))
    assert [each.id for each in store.runs.recover()] == ["new"]
    store.writer.flush()
    (old,) = store.runs.find(status="failed")
    assert "another version" in old.message
    with pytest.raises(StoreError, match="another version"):
        store.runs.get("old")


def test_a_run_that_diverged_is_kept(store):
    """Its loss is no number, which JSON and SQLite's floats do not know."""
    store.runs.queue("a", "me", RUN, (CONFIG,))
    store.runs.begin("a")
    lost = replace(HISTORY[0], loss=math.nan, test_loss=math.inf)
    store.runs.epoch("a", lost)
    store.writer.flush()
    (back,) = store.runs.get("a").history
    assert math.isnan(back.loss)
    assert back.test_loss == math.inf


def test_a_regression_is_kept(store):
    """Its figures are R² and the curve it fits, which goes below zero."""
    config = RunConfig.with_recipe(task="regression")
    history = (replace(HISTORY[0], test_accuracy=None, test_r2=0.9, test_rmse=0.2),)
    plain = dict(test_correct=None, history=history)
    result = replace(RESULT, config=config, **plain)
    store.runs.queue("a", "me", RUN, (config,))
    store.runs.begin("a")
    store.runs.progress("a", 100, LOSSES, result.fit)
    store.writer.flush()
    assert store.runs.get("a").fit == result.fit
    store.runs.end("a", "finished", result)
    store.writer.flush()
    assert store.runs.get("a").value == result
    assert store.runs.get("a").fit is None, "it is not kept twice"
    assert store.runs.get("a").summary.r2 == 0.9
    assert store.runs.get("a").summary.accuracy is None


def test_a_list_has_the_newest_first(store):
    """Of one visitor or all, of a task, without those that are hidden."""
    for run_id, visitor, task in (
        ("a", "me", "sprites"),
        ("b", "you", "sprites"),
        ("c", "me", "fashion-mnist"),
    ):
        finished(store, run_id, visitor, task=task)
    store.writer.flush()

    def ids(*arguments, **more):
        return [each.id for each in store.runs.find(*arguments, **more)]

    assert ids() == ["c", "b", "a"]
    assert ids("me") == ["c", "a"]
    assert ids(task="sprites", limit=1) == ["b"]
    assert store.runs.hide(["a"], "me")
    assert ids("me") == ["c"]
    assert ids("me", hidden=True) == ["c", "a"]


def test_only_their_visitor_changes_runs(store):
    """Nobody renames, hides or deletes what is another's."""
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


def test_what_a_deleted_run_still_reports_is_not_kept(store):
    """Nor does it disturb what others report."""
    store.runs.queue("a", "me", RUN, (CONFIG,))
    store.runs.begin("a")
    store.runs.delete(["a"], "me")
    store.runs.started("a", STARTED)
    store.runs.progress("a", 50, LOSSES[:50])
    store.runs.epoch("a", HISTORY[0])
    store.runs.end("a", "finished", RESULT)
    finished(store, "b")
    store.writer.flush()
    assert [each.id for each in store.runs.find()] == ["b"]
    with store.database.read() as connection:
        for table in (tables.epochs, tables.curves, tables.checkpoints, tables.details):
            rows = connection.execute(table.select())
            assert {row.run_id for row in rows} == {"b"}


def test_a_result_that_is_no_plain_data_leaves_the_run_finished(store):
    """An array of a lab's can't be kept; that it ended can."""
    store.runs.queue("a", "me", "core.x:y", ())
    store.runs.end("a", "finished", object())
    store.writer.flush()
    kept = store.runs.get("a")
    assert (kept.summary.status, kept.value) == ("finished", None)


@pytest.mark.parametrize(
    "text", ["a\0b", "\ud800", "'; DROP TABLE runs; --", "💥" * 99]
)
def test_any_text_is_taken(store, text):
    """A name, a message, an id of an address: no database refuses a row for it."""
    assert store.runs.get(text) is None
    assert store.runs.checkpoint(text) is None
    finished(store, "a")
    assert store.runs.rename("a", "me", text)
    store.runs.queue("b", "me", RUN, (CONFIG, text))
    store.runs.end("b", "failed", message=text)
    store.writer.flush()
    assert store.runs.get("b").summary.status == "failed"
    assert store.runs.get("b").arguments == (CONFIG, text)


def test_a_summary_has_the_columns_of_the_table():
    """All but the arguments and the class; the settings are among them."""
    names = {field.name for field in fields(RunSummary)}
    columns = {column.name for column in tables.runs.columns}
    assert names == columns - {"arguments", "class_id"}
    assert names >= {field.name for field in fields(RunConfig)}


def test_the_words_for_how_runs_end_are_those_of_jobs():
    """Whatever has ended is not going on."""
    assert not {*ENDED, "interrupted"} & set(GOING_ON)
