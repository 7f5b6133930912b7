"""What one person may have of the engine's workers, against a real cluster."""

import threading
import time
from statistics import median

import pytest

from core.config import RunConfig
from core.errors import ExplainedError
from core.jobs.engine import Engine
from core.jobs.job import Job, Stored
from core.jobs.limits import Gate, Limits
from core.results import StepProgress

RUN = "core.training:run"
LONG = RunConfig(task="sprites", epochs=50)
SHORT = RunConfig(task="sprites", epochs=1, batch_size=256)
REST = "tests.jobs.test_engine_limits:rest"
INSPECT = "core.checkpoints.round_trip:inspect"


def rest(seconds: float) -> None:
    """Work that takes so long."""
    time.sleep(seconds)


def finish(engine: Engine, *job_ids: str) -> list[Job]:
    deadline = time.monotonic() + 90
    while not all(engine.job(job_id).ended for job_id in job_ids):
        assert time.monotonic() < deadline, "it did not end in time"
        time.sleep(0.02)
    return [engine.job(job_id) for job_id in job_ids]


@pytest.fixture
def busy(engine):
    """The training lane, with a long run that ends with the test."""
    job_id = engine.submit(RUN, LONG)
    while not any(isinstance(e, StepProgress) for e in engine.job(job_id).events):
        time.sleep(0.02)
    yield job_id
    engine.cancel(job_id)
    finish(engine, job_id)


def test_a_run_over_its_time_is_ended_with_a_sentence(engine, monkeypatch):
    """It keeps what it learned, and the next one runs."""
    monkeypatch.setattr(engine, "_limits", Limits(max_job_seconds=3))
    (job,) = finish(engine, engine.submit(RUN, LONG))
    assert job.status == "failed"
    assert "ended after 3 seconds, the longest that a job may take" in job.message
    assert any(isinstance(event, StepProgress) for event in job.events)
    assert 3 <= job.seconds < 20
    monkeypatch.setattr(engine, "_limits", Limits())
    (job,) = finish(engine, engine.submit(RUN, SHORT))
    assert job.status == "finished"
    assert job.id not in engine._timers


class Class(Gate):
    """One whose teacher pauses and resumes, and where a job may take two seconds."""

    paused = False

    def seconds(self, owner: str) -> float | None:
        return 2.0 if owner else None


def test_a_paused_queue_keeps_its_order(engine, monkeypatch):
    """Nothing is handed out but to the lab, and then all is, as it came."""
    monkeypatch.setattr(engine, "_gate", Class())
    monkeypatch.setattr(Class, "paused", True)
    ids = [engine.submit("os:getpid", owner=owner) for owner in ("ana", "bo")]
    finish(engine, engine.submit("os:getpid", lane="lab", owner="ana"))
    engine._when_looked()
    assert [engine.job(job_id).place for job_id in ids] == [1, 2]
    assert engine.paused
    monkeypatch.setattr(Class, "paused", False)
    engine._when_looked()
    first, second = finish(engine, *ids)
    assert first.status == second.status == "finished"
    assert first.started <= second.started


def test_a_queue_that_is_cleared_loses_no_cancel(engine, busy):
    """All that wait have ended, the one whose turn just came too; what runs goes on."""
    ids = [engine.submit("os:getpid", owner=owner) for owner in ("ana", "ana", "bo")]
    turn = engine.job(ids[0])
    assert engine.clear() == 3
    engine._hand_out(turn)
    assert [engine.job(job_id).status for job_id in ids] == ["cancelled"] * 3
    assert engine.job(busy).status == "running"
    assert engine.is_idle(but=busy)


def test_a_run_over_the_time_of_a_class_is_ended(engine, monkeypatch):
    """Not what the server does by itself, which is in no class."""
    monkeypatch.setattr(engine, "_gate", Class())
    (job,) = finish(engine, engine.submit(RUN, LONG, owner="ana"))
    assert "ended after 2 seconds, the longest that a job may take" in job.message


def test_the_turns_are_fair(engine, busy):
    """Two of one person and one of another are served in turn."""
    ids = [engine.submit("os:getpid", owner=owner) for owner in ("ana", "ana", "bo")]
    assert [engine.job(job_id).place for job_id in ids] == [1, 3, 2]
    engine.cancel(busy)
    first, third, second = finish(engine, *ids)
    assert first.started <= second.started <= third.started


@pytest.mark.usefixtures("busy")
def test_what_is_refused_is_not_queued(engine, monkeypatch):
    """A sentence instead of a place; what waits is not touched."""
    monkeypatch.setattr(engine, "_limits", Limits(max_jobs_per_person=1))
    waiting = engine.submit("os:getpid", owner="eve")
    with pytest.raises(ExplainedError, match="You have 1 job waiting or running"):
        engine.submit("os:getpid", owner="eve")
    assert [job.id for job in engine.jobs("os:getpid", "eve")][-1] == waiting
    engine.cancel(waiting)
    engine.cancel(engine.submit("os:getpid", owner="eve"))


def test_the_wait_is_known_once_the_like_was_done(engine):
    """Before that nothing is said; then what is left of the run before it."""
    config = RunConfig(task="sprites", epochs=4, batch_size=512)
    (done,) = finish(engine, engine.submit(RUN, config))
    running, waiting = (engine.submit(RUN, config) for _ in range(2))
    behind_unknown = engine.submit("os:getcwd"), engine.submit("os:getcwd")
    assert 0 <= engine.wait(waiting) <= done.seconds
    assert engine.wait(running) is None  # it does not wait
    assert engine.wait(behind_unknown[1]) is None
    for job_id in (running, waiting, *behind_unknown):
        engine.cancel(job_id)
    finish(engine, running, waiting, *behind_unknown)


def test_a_checkpoint_is_put_aside_and_reaches_the_workers(engine):
    """A job and a question that name it get its bytes; one that is gone is told."""
    (run,) = finish(engine, engine.submit(RUN, SHORT))
    assert run.value.checkpoint == b""
    stored = Stored(run.id)
    assert len(engine.read(stored)) > 400_000
    tensors = engine.ask(INSPECT, stored)
    (job,) = finish(engine, engine.submit(INSPECT, stored, lane="lab"))
    assert job.value == tensors
    (lost,) = finish(engine, engine.submit(INSPECT, Stored("gone"), lane="lab"))
    assert (lost.status, "no longer kept" in lost.message) == ("failed", True)
    with pytest.raises(ExplainedError, match="no longer kept"):
        engine.ask(INSPECT, Stored("gone"))


def test_one_person_leaves_room_in_the_lab(engine):
    """While somebody asks much that takes long, others are answered as quickly."""

    def quick() -> float:
        began = time.perf_counter()
        engine.ask("os:getpid", owner="bo")
        return time.perf_counter() - began

    def slow() -> None:
        engine.ask(REST, 1.0, owner="ana")

    alone = median(quick() for _ in range(5))
    jobs = [engine.submit(REST, 1.0, lane="lab", owner="ana") for _ in range(2)]
    threads = [threading.Thread(target=slow) for _ in range(6)]
    for thread in threads:
        thread.start()
    time.sleep(0.1)
    assert median(quick() for _ in range(5)) < max(0.5, 5 * alone)
    assert threads[-1].is_alive()
    for thread in threads:
        thread.join()
    assert {job.status for job in finish(engine, *jobs)} == {"finished"}
