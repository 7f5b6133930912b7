import re
import threading
from dataclasses import replace

import pytest

from core.jobs import history
from core.jobs.engine import Engine
from core.jobs.history import History, words
from core.jobs.job import Job, PickedUp, Progress, Stored
from core.results import Change, Fit, RunResult, StepProgress
from core.store import writer
from core.store.store import Store
from tests.app.jobs.follow import LONG, RUN, SHORT, finish, wait
from tests.app.store.failures import read_only
from tests.app.store.made_up import HISTORY, LOSSES, RESULT, STARTED
from tests.figures import figures
from to_device.errors import ExplainedError

CONFIG = RESULT.config
CHANGES = (Change(10, 0.01), Change(30, 2e-4))
FIT = Fit(step=50, outputs=(-1.0, 0.5), noise=None)


@pytest.fixture
def store(open_store, file_url) -> Store:
    return open_store(file_url)


def job(job_id: str, *arguments: object, owner: str = "ada") -> Job:
    return Job(job_id, RUN, arguments or (CONFIG,), "train", owner)


def reported(history: History, job_id: str) -> Job:
    steps = (StepProgress(p.step, (p,), 100.0, p.seconds) for p in LOSSES[:50])
    reporting = job(job_id)
    for event in (PickedUp("train-0"), STARTED, *steps, HISTORY[0], FIT, *CHANGES):
        reporting = reporting.after(event)
        history.record(reporting, event)
    return reporting


def test_a_job_that_ended_comes_back_as_it_was(store):
    first = History(store)
    first.wait(first.queue(job("a"), 0))
    reported(first, "a")
    result = replace(RESULT, changes=CHANGES)
    first.end(Job("a", RUN, (CONFIG,), "train", status="finished"), result)
    assert store.writer.flush()
    again = History(store)
    back = again.job("a")
    assert again.job("a") is back
    assert (back.status, back.owner, back.arguments) == ("finished", "ada", (CONFIG,))
    whole = Progress(STARTED, LOSSES, HISTORY, fit=RESULT.fit, changes=CHANGES)
    assert back.progress == whole
    assert back.value.changes == CHANGES
    assert back.value.checkpoint == b""
    assert (back.value.losses, back.value.history) == (LOSSES, HISTORY)
    assert again.checkpoint(Stored("a")) == RESULT.checkpoint
    assert again.job("b") is None
    gone = re.escape(words("history.no_checkpoint"))
    with pytest.raises(ExplainedError, match=gone):
        again.checkpoint(Stored("b"))


@pytest.mark.parametrize("every", [0.0, 3600.0])
def test_a_run_that_was_cut_off_keeps_its_curve_and_epochs(store, monkeypatch, every):
    """As far as was written; a run that was canceled has all of them."""
    monkeypatch.setattr(history, "PROGRESS_SECONDS", every)
    first = History(store)
    for job_id in ("cut", "cancelled"):
        first.wait(first.queue(job(job_id), 0))
        last = reported(first, job_id)
    first.end(replace(last, status="cancelled"), None)
    again = History(store)
    assert again.recover() == []
    cut, cancelled = again.job("cut"), again.job("cancelled")
    assert cut.status == "interrupted"
    assert figures(cut.message) == ["50", "100"]
    losses = LOSSES[:50] if every == 0 else ()
    for stopped, points in ((cut, losses), (cancelled, LOSSES[:50])):
        run = stopped.progress
        assert (run.started, run.history) == (STARTED, HISTORY[:1])
        assert run.fit == (FIT if points else None)
        assert run.changes == CHANGES
        assert (run.latest.step, run.losses) == (50, points)


def test_what_waits_comes_back_in_its_order_and_round(store):
    first = History(store)
    waiting = [(job("a"), 3), (job("b", Stored("x"), 7, "cpu", owner="bob"), 1)]
    for submitted, round in waiting:
        first.wait(first.queue(submitted, round))
    assert first.queue(job("no data", threading.Lock()), 0) is None
    back = History(store).recover()
    assert [round for _, round in back] == [3, 1]
    for (old, _), (new, _) in zip(waiting, back, strict=True):
        differ = {"work": new.work, "arrived": new.arrived}
        assert vars(new) == vars(old) | differ


def test_a_lab_that_was_cut_off_comes_back_with_its_readings(store, monkeypatch):
    """Until its owner has ended another one; runs and the server's own do not come."""
    monkeypatch.setattr(history, "PROGRESS_SECONDS", 0.0)
    first, race = History(store), "core.lessons.compare.race:race"
    labs = [replace(job(name, "cpu"), address=race) for name in ("old", "new", "cut")]
    labs.append(replace(labs[0], id="hers", owner="bob"))
    for begun in (job("run"), *labs):
        first.wait(first.queue(begun, 0))
        for event in (PickedUp("train-0"), "one", "two"):
            begun = begun.after(event)
            first.record(begun, event)
        if begun.id == "new":
            first.end(replace(begun, status="finished"), 7)
    assert store.writer.flush()
    assert store.runs.get("new").value == 7
    again = History(store)
    assert again.recover() == []
    back = again.interrupted()
    assert [(job.id, job.status) for job in back] == [
        ("cut", "interrupted"),
        ("hers", "interrupted"),
    ]
    for cut in back:
        assert cut.events[-2:] == ("one", "two")
        assert cut.value is None
        assert figures(cut.message) == []


def test_what_is_deleted_is_gone_from_memory_too(store):
    history = History(store)
    history.wait(history.queue(job("a"), 0))
    history.end(replace(job("a"), status="finished"), RESULT)
    assert history.job("a")
    store.visitors.delete("ada")
    history.forget("ada", "a")
    assert history.job("a") is None


def test_a_run_that_ends_without_its_database_is_read_from_memory(store, monkeypatch):
    monkeypatch.setattr(writer, "RETRY_SECONDS", 0.1)
    history = History(store)
    history.wait(history.queue(job("a"), 0))
    with read_only(store, None):
        history.end(replace(job("a"), status="finished"), RESULT)
        wait(lambda: "Training continues" in store.problem)
        assert history.job("a").status == "finished"
        assert history.checkpoint(Stored("a")) == RESULT.checkpoint
    assert store.writer.flush(30)
    assert store.runs.get("a").value == RESULT


@pytest.mark.alone
@pytest.mark.slow
@pytest.mark.usefixtures("own_key")
@pytest.mark.parametrize("is_killed", [True, False])
def test_the_next_engine_goes_on_with_what_waited_once(
    engine, store, open_store, file_url, monkeypatch, is_killed
):
    monkeypatch.setattr(history, "PROGRESS_SECONDS", 0.1)
    scheduler = engine._connection._client.scheduler.address
    own = Engine(scheduler, store=store)
    going = own.submit(RUN, LONG, owner="ada")
    waiting = own.submit(RUN, SHORT, owner="bob")
    wait(lambda: (run := store.runs.get(going)) and run.progress.losses)
    if is_killed:  # nothing is told to the store any more
        monkeypatch.setattr(own, "_history", History(Store.temporary("")))
        own._jobs._on_event = lambda *_: None
    own.close()
    store.close()

    store = open_store(file_url)
    own = Engine(scheduler, store=store)
    cut = own.job(going)
    assert (cut.status, cut.owner) == ("interrupted", "ada")
    assert "at step" in cut.message
    done = finish(own, waiting)
    assert (done.status, done.owner, done.tries) == ("finished", "bob", 1)
    assert isinstance(done.value, RunResult)
    assert len(own.read(Stored(waiting))) > 100_000
    own.close()

    # What is known of runs' times outlives a restart, too.
    store.writer.flush(10.0)
    own = Engine(scheduler, store=store)
    expected = own.expected_seconds(RUN, SHORT)
    assert expected == pytest.approx(done.value.timed_seconds)
    assert done.id in own._spreads
    own.close()
