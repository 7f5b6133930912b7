import asyncio
import os
import re
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from core.classroom.room import Room, Teacher
from core.classroom.rules import Rules
from core.config import RunConfig
from core.jobs import cluster, worker
from core.jobs.admission import Gate, Limits, gave_way, overdue
from core.jobs.dask_connection import words
from core.jobs.engine import Engine
from core.jobs.estimates import Estimates
from core.jobs.job import Job, Stored
from core.store.store import Store
from core.ui import server
from core.watch import NO_CONTROL, Control
from tests.app.jobs.follow import (
    LONG,
    RUN,
    SHORT,
    Counted,
    finish,
    running,
    status,
    train_worker,
    wait,
)
from tests.process import HOUR, that_go_on
from to_device.errors import ExplainedError

QUICK, HOLD = "os:getpid", "tests.app.jobs.test_engine:hold"
INSPECT = "core.lessons.checkpoints.round_trip:inspect"
ended_jobs: list[Job] = []  # the jobs of `own_engine` that ended


@pytest.fixture(scope="module")
def own_engine() -> Iterator[Engine]:
    """An engine that tests may harm; it has to recover each time."""

    def tell(job: Job) -> None:
        ended_jobs.append(job)
        raise RuntimeError("no fault of the job")

    engine = Engine(on_end=tell)
    engine.ask("core.devices:describe", seconds=300)
    yield engine
    engine.close()


@pytest.fixture
def busy(engine) -> Iterator[str]:
    job_id = engine.submit(RUN, LONG)
    running(engine, job_id)
    yield job_id
    engine.cancel(job_id)
    finish(engine, job_id)


def hold(folder: str) -> bool:
    """Leave a file in the folder, and wait in a worker until it has a file "go"."""
    Path(folder, uuid.uuid4().hex).touch()
    while not Path(folder, "go").exists():
        time.sleep(0.02)
    return True


def test_a_run_is_steered_by_its_owner_alone(engine, busy, monkeypatch):
    job_id = engine.submit(RUN, LONG, owner="ada")

    def progress():
        return engine.job(job_id).progress

    engine.steer(job_id, "ada", learning_rate=0.5)  # it waits: there is nothing yet
    engine.cancel(busy)
    running(engine, job_id)
    engine.steer(job_id, "bob", learning_rate=0.5)
    engine.steer(job_id, "ada", learning_rate=0.01)
    wait(lambda: progress().changes)
    assert [change.learning_rate for change in progress().changes] == [0.01]
    store = Store.temporary("")
    room, teacher = Room(store.classes), Teacher("a browser", "Ms Bird")
    fixed = Rules(fixed={"learning_rate": "0.01"})
    room.start(teacher, room.create(teacher, "9B", 30, fixed).id)
    monkeypatch.setattr(engine.admission, "gate", room)
    with pytest.raises(ExplainedError, match=r"\b0\.01\b"):
        engine.steer(job_id, "ada", learning_rate=0.5)
    assert engine.control(job_id).learning_rate == 0.01
    store.close()
    engine.cancel(job_id)
    job = finish(engine, job_id)
    assert job.status == "cancelled"
    assert len(job.progress.changes) == 1
    assert engine.control(job_id) == NO_CONTROL


def test_a_run_is_stored_as_it_goes_on_though_nobody_looks(engine, monkeypatch):
    """Neither a page reads it, nor the check that comes once a second."""
    monkeypatch.setattr(engine._connection, "_on_check", lambda: None)
    recorded: list[object] = []
    keep = engine._jobs._on_event
    monkeypatch.setattr(
        engine._jobs,
        "_on_event",
        lambda job, event: (recorded.append(event), keep(job, event)),
    )
    ids = [engine.submit("tests.app.jobs.follow:count", 8) for _ in range(2)]
    wait(lambda: len(recorded) == 2 * (1 + 8))
    monkeypatch.undo()
    for job_id in ids:
        assert finish(engine, job_id).events == tuple(map(Counted, range(8)))


def test_a_wish_that_comes_late_is_left_out(monkeypatch):
    monkeypatch.setitem(worker._controls, "a", NO_CONTROL)
    for number in (2, 1):
        worker.steer("a", Control(learning_rate=number, number=number))
    worker.steer("b", Control(number=1))  # another process does it
    assert worker._controls == {"a": Control(learning_rate=2, number=2)}


@pytest.mark.alone
@pytest.mark.slow
def test_a_run_is_cancelled_while_its_worker_starts(own_engine):
    finish(own_engine, own_engine.submit(RUN, SHORT))
    train_worker(own_engine).kill()
    wait(lambda: "train" not in own_engine.hosts.capacity)
    job_id = own_engine.submit(RUN, SHORT)
    assert status(own_engine, job_id) == "starting"
    own_engine.cancel(job_id)
    assert status(own_engine, job_id) == "cancelled"
    done = finish(own_engine, own_engine.submit(RUN, SHORT))
    assert done.status == "finished"
    assert ended_jobs[-1] is done
    assert [job.status for job in ended_jobs if job.id == job_id] == ["cancelled"]


def test_a_failing_question_is_an_explained_error(engine, missing_device):
    with pytest.raises(ExplainedError, match=f"no {missing_device} device"):
        engine.ask("core.devices:resolve", missing_device)


@pytest.mark.alone
@pytest.mark.slow
def test_a_killed_worker_fails_its_run_and_the_next_run_works(own_engine):
    lost = own_engine.submit(RUN, LONG)
    waiting = own_engine.submit(RUN, SHORT)
    running(own_engine, lost)
    train_worker(own_engine).kill()
    assert finish(own_engine, lost).status == "failed"
    assert own_engine.job(lost).message == words("workers.lost_worker")
    assert finish(own_engine, waiting).status == "finished"


@pytest.mark.alone
@pytest.mark.slow
def test_a_killed_cluster_is_started_again(own_engine):
    lost = own_engine.submit(RUN, LONG)
    running(own_engine, lost)
    own_engine._connection._cluster._process.kill()
    assert finish(own_engine, lost).status == "failed"
    assert finish(own_engine, own_engine.submit(RUN, SHORT)).status == "finished"


@pytest.mark.alone
@pytest.mark.slow
@pytest.mark.usefixtures("quick_to_replace")
def test_a_train_worker_that_hangs_is_told_and_replaced(own_engine):
    hung = own_engine.submit(RUN, LONG)
    running(own_engine, hung)
    train_worker(own_engine).suspend()
    wait(lambda: own_engine.job(hung).message)
    assert own_engine.job(hung).status == "running", "it is told before it has failed"
    job = finish(own_engine, hung)
    assert (job.status, job.message) == ("failed", words("workers.replaced"))
    assert finish(own_engine, own_engine.submit(RUN, SHORT)).status == "finished"


def test_a_canceled_fetch_is_not_in_the_way_of_later_ones(engine):
    client = engine._connection._client
    canceled = asyncio.Future(loop=client.loop.asyncio_loop)
    client.loop.asyncio_loop.call_soon_threadsafe(canceled.cancel)
    client._gather_future = canceled
    wait(lambda: client._gather_future is not canceled)
    assert engine.ask(QUICK, seconds=120)


@pytest.mark.alone
@pytest.mark.slow
@pytest.mark.usefixtures("quick_to_replace")
def test_a_lab_worker_that_hangs_is_replaced(own_engine):
    lab = psutil.Process(own_engine.ask(QUICK, seconds=120))
    lab.suspend()
    with pytest.raises(ExplainedError) as told:
        own_engine.ask(QUICK, seconds=300)
    assert str(told.value) == words("questions.silent")
    wait(lambda: not psutil.pid_exists(lab.pid))
    assert own_engine.ask(QUICK, seconds=300) != lab.pid


def without_nanny(dask_worker: Any) -> None:
    """Let a worker fail halfway through closing, as if its nanny didn't answer it."""
    dask_worker.nanny = "tls://127.0.0.1:1"


async def drop(address: str, dask_scheduler: Any) -> None:
    await dask_scheduler.remove_worker(address, stimulus_id="a test", close=False)


@pytest.mark.alone
@pytest.mark.slow
def test_a_lab_worker_that_the_scheduler_has_lost_is_replaced(own_engine):
    client = own_engine._connection._client
    lab = own_engine.ask(QUICK, seconds=120)
    workers = client.scheduler_info(n_workers=-1)["workers"]
    (address,) = (a for a, w in workers.items() if "lab" in w["resources"])
    client.run(without_nanny, workers=[address])
    client.run_on_scheduler(drop, address)
    wait(lambda: own_engine.problem == words("workers.silent_scheduler"))
    assert psutil.pid_exists(lab)
    assert own_engine.ask(QUICK, seconds=300) != lab
    assert not psutil.pid_exists(lab)
    wait(lambda: own_engine.problem == "")


@pytest.mark.alone
@pytest.mark.slow
@pytest.mark.usefixtures("quick_to_replace")
def test_a_cluster_that_hangs_is_started_again(own_engine):
    lost = own_engine.submit(RUN, LONG)
    running(own_engine, lost)
    process = psutil.Process(own_engine._connection._cluster._process.pid)
    family = [process, *process.children(recursive=True)]
    process.suspend()
    assert finish(own_engine, lost).status == "failed"
    assert finish(own_engine, own_engine.submit(RUN, SHORT)).status == "finished"
    assert list(that_go_on(family)) == []


@pytest.mark.alone
@pytest.mark.slow
def test_a_worker_that_only_computes_is_not_replaced(own_engine, monkeypatch):
    """Though it holds the interpreter's lock, so that no heartbeat comes."""
    monkeypatch.setattr("core.jobs.dask_connection.REPLACE_SECONDS", 2.0)
    monkeypatch.setattr("core.jobs.hosts.TELL_SECONDS", 2.0)
    busy = own_engine.submit("tests.app.jobs.test_engine:hold_the_lock")
    wait(lambda: own_engine.job(busy).message)
    job = finish(own_engine, busy)
    assert (job.status, job.value) == ("finished", True)


def hold_the_lock() -> bool:
    """Compute for ten seconds or so in one call of C."""
    began, size = time.monotonic(), 20
    while time.monotonic() < began + 8:
        size += 1
        re.match(r"(a+)+$", "a" * size + "b")
    return True


@pytest.fixture
def quick_to_replace(monkeypatch) -> None:
    monkeypatch.setattr("core.jobs.dask_connection.REPLACE_SECONDS", 4.0)
    monkeypatch.setattr("core.jobs.hosts.TELL_SECONDS", 2.0)
    monkeypatch.setattr("core.jobs.dask_connection.TELL_SECONDS", 2.0)
    monkeypatch.setattr("core.jobs.dask_connection.NO_WORKER_SECONDS", HOUR)


def a_full_device(_config: RunConfig) -> None:
    import torch

    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB.")


def test_a_full_device_fails_the_run_with_a_smaller_batch_to_try(engine):
    greedy = RunConfig(batch_size=4096)
    job = finish(
        engine, engine.submit("tests.app.jobs.test_engine:a_full_device", greedy)
    )
    assert job.status == "failed"
    assert "Try 1,024" in job.message
    assert finish(engine, engine.submit(RUN, SHORT)).status == "finished"


def spoil() -> int:
    """No device works in this process any more, as after an assertion in a kernel."""
    from core import devices

    devices.usable = lambda _: False
    return os.getpid()


@pytest.mark.alone
@pytest.mark.slow
def test_a_spoiled_device_harms_no_other_run(own_engine):
    spoiled = finish(own_engine, own_engine.submit("tests.app.jobs.test_engine:spoil"))
    assert finish(own_engine, own_engine.submit(RUN, SHORT)).status == "finished"
    assert train_worker(own_engine).pid != spoiled.value


@pytest.mark.usefixtures("own_key")
def test_an_engine_can_join_a_cluster_and_leave_it_up(engine):
    guest = Engine(engine._connection._client.scheduler.address)
    assert finish(guest, guest.submit(RUN, SHORT)).status == "finished"
    guest.close()
    assert engine.ask("core.devices:describe").cores >= 1


def test_only_the_problem_names_the_address_of_a_missing_scheduler(monkeypatch):
    monkeypatch.setattr("core.jobs.dask_connection.CONNECT_SECONDS", 1.0)
    monkeypatch.setattr(cluster, "security", lambda *_: cluster.temporary())
    engine = Engine("tls://127.0.0.1:9")
    with pytest.raises(ExplainedError) as told:
        engine.ask("core.devices:describe", seconds=60)
    assert str(told.value) == words("workers.away"), "visitors learn no address"
    assert "127.0.0.1:9" in engine.problem
    engine.close()


class Class(Gate):
    paused = False

    def seconds(self, owner: str) -> float:  # noqa: ARG002
        return 2.0


@pytest.mark.alone
@pytest.mark.slow
@pytest.mark.parametrize(
    "limit", [("limits", Limits(max_job_seconds=2)), ("gate", Class())]
)
def test_a_run_over_its_time_is_ended_with_a_sentence(engine, monkeypatch, limit):
    job_id = engine.submit(RUN, LONG, owner="ana")
    running(engine, job_id)
    with monkeypatch.context() as strict:
        strict.setattr(engine.admission, *limit)
        job = finish(engine, job_id)
    assert job.status == "failed"
    assert job.message == overdue(2.0)
    assert job.progress.latest
    assert job.seconds >= 2
    job = finish(engine, engine.submit(RUN, SHORT))
    assert job.status == "finished"


def test_a_run_goes_on_when_the_clock_jumps(engine, busy, monkeypatch):
    """As after a laptop's sleep, which is no time of the run."""
    later = time.time() + 7200
    with monkeypatch.context() as clock:
        clock.setattr(time, "time", lambda: later)
        engine._when_checked()
    assert busy not in engine._stops


def test_a_paused_queue_keeps_its_order(engine, monkeypatch):
    monkeypatch.setattr(engine.admission, "gate", Class())
    monkeypatch.setattr(Class, "paused", True)
    ids = [engine.submit(QUICK, owner=owner) for owner in ("ana", "bo")]
    finish(engine, engine.submit(QUICK, lane="lab", owner="ana"))
    engine._when_checked()
    assert [engine.job(job_id).place for job_id in ids] == [1, 2]
    assert engine.paused
    monkeypatch.setattr(Class, "paused", False)
    engine._when_checked()
    first, second = (finish(engine, job_id) for job_id in ids)
    assert first.status == second.status == "finished"
    assert first.started <= second.started


def test_a_program_with_many_cookies_keeps_nobody_out_of_a_full_queue(
    engine, monkeypatch
):
    monkeypatch.setattr(engine.admission, "gate", Class())
    monkeypatch.setattr(engine.admission, "limits", Limits(max_waiting_jobs=3))
    monkeypatch.setattr(Class, "paused", True)
    cookies = ("one", "two", "three")
    ids = [engine.submit(QUICK, owner=cookie, network="a") for cookie in cookies]
    mine = engine.submit(QUICK, owner="ana", network="b")
    assert [status(engine, i) for i in ids] == ["queued", "queued", "cancelled"]
    assert engine.job(ids[-1]).message == gave_way()
    assert engine.job(mine).place == 3
    engine.clear()


def test_a_queue_that_is_cleared_loses_no_cancel(engine, busy):
    """All that wait have ended, the one whose turn just came too; what runs goes on."""
    alone = engine.submit(RUN, SHORT)
    engine.cancel(alone)
    assert (status(engine, alone), engine.job(alone).worker) == ("cancelled", "")
    ids = [engine.submit(QUICK, owner=owner) for owner in ("ana", "ana", "bo")]
    turn = engine.job(ids[0])
    assert engine.clear() == 3
    engine._hand_out(turn)
    assert [engine.job(job_id).status for job_id in ids] == ["cancelled"] * 3
    assert engine.job(busy).status == "running"
    assert engine.is_idle(but=busy)


def test_the_queue_is_fair(engine, busy):
    ids = [engine.submit(QUICK, owner=owner) for owner in ("ana", "ana", "bo")]
    assert [engine.job(job_id).place for job_id in ids] == [1, 3, 2]
    assert engine.ask("core.devices:describe").cores >= 1  # the lab waits for nobody
    engine.cancel(busy)
    first, third, second = (finish(engine, job_id) for job_id in ids)
    assert first.started <= second.started <= third.started


def test_the_wait_is_known_once_the_like_was_done(engine, busy, monkeypatch):
    estimates = Estimates()
    monkeypatch.setattr(engine.admission, "estimates", estimates)
    waiting, behind = engine.submit(RUN, SHORT), engine.submit(QUICK)
    assert engine.wait(waiting) is None
    estimates.learn(replace(engine.job(busy), status="finished", seconds=3600.0))
    assert 3000 < engine.wait(waiting) <= 3600
    assert engine.wait(busy) is None  # it does not wait
    assert engine.wait(behind) is None  # nobody knows what is before it
    engine.cancel(busy)
    done = finish(engine, waiting)
    assert estimates.seconds(done) == pytest.approx(done.seconds)
    finish(engine, behind)


def test_a_checkpoint_is_put_aside_and_reaches_the_workers(engine):
    run = finish(engine, engine.submit(RUN, SHORT))
    assert run.value.checkpoint == b""
    stored = Stored(run.id)
    assert len(engine.read(stored)) > 400_000
    tensors = engine.ask(INSPECT, stored)
    job = finish(engine, engine.submit(INSPECT, stored, lane="lab"))
    assert job.value == tensors
    lost = finish(engine, engine.submit(INSPECT, Stored("gone"), lane="lab"))
    with pytest.raises(ExplainedError) as told:
        engine.ask(INSPECT, Stored("gone"))
    gone = words("history.no_checkpoint")
    assert (lost.status, lost.message, str(told.value)) == ("failed", gone, gone)


@contextmanager
def holding(folder: Path) -> Iterator[None]:
    try:
        yield
    finally:
        (folder / "go").touch()


def test_one_person_leaves_room_in_the_lab(engine, tmp_path):
    ana = {"owner": "ana"}
    jobs = [engine.submit(HOLD, str(tmp_path), lane="lab", **ana) for _ in range(2)]
    ask = partial(engine.ask, HOLD, str(tmp_path), seconds=120, **ana)
    with ThreadPoolExecutor(6) as pool, holding(tmp_path):
        slow = [pool.submit(ask) for _ in range(6)]
        for _ in range(5):
            engine.ask(QUICK, owner="bo")
        assert not any(answer.done() for answer in slow)
    assert {finish(engine, job_id).status for job_id in jobs} == {"finished"}
    assert all(answer.result() for answer in slow)


def test_many_uploads_keep_nobody_from_asking(engine, tmp_path):
    def upload(number: int) -> bool:
        more = {"lane": "upload", "owner": f"eve {number}", "seconds": 120}
        return engine.ask(HOLD, str(tmp_path), **more)

    def begun() -> int:
        return len(list(tmp_path.iterdir()))

    with ThreadPoolExecutor(12) as people, holding(tmp_path):
        uploads = [people.submit(upload, number) for number in range(12)]
        wait(lambda: begun() == 2)
        engine.ask(QUICK, owner="ada")
        assert begun() == 2
    assert all(upload.result() for upload in uploads)


def test_after_a_turn_there_is_all_the_time_for_an_answer(engine, monkeypatch):
    seconds = []

    def answer(_: str, __: tuple, limit: float) -> None:
        seconds.append(limit)
        time.sleep(0.2)

    monkeypatch.setattr(engine._connection, "ask", answer)
    with ThreadPoolExecutor(6) as people:
        for number in range(6):
            people.submit(engine.ask, QUICK, seconds=9, owner=str(number), lane="code")
    assert seconds == [9] * 6


def test_who_is_forgotten_has_no_jobs(engine):
    done = engine.submit(RUN, SHORT, owner="me")
    stored = finish(engine, done).id
    runs, waits = (engine.submit(RUN, LONG, owner="me") for _ in range(2))
    theirs = engine.submit(RUN, SHORT, owner="you")
    running(engine, runs)
    engine.forget("me")
    server.store().visitors.delete("me")
    assert [engine.job(job_id) for job_id in (done, runs, waits)] == [None] * 3
    assert engine.jobs(RUN, "me") == []
    assert finish(engine, theirs).status == "finished"
    wait(lambda: not engine._queue.count_of("me"))
    assert engine._queue.count_of("you") == 0
    assert stored not in engine._history._late


def test_a_forgotten_job_that_was_lost_keeps_no_place(engine):
    job_id = engine.submit(RUN, LONG, owner="me")
    running(engine, job_id)
    engine._jobs.remove(job_id)
    engine._when_worker_died(job_id, "its worker is gone")
    assert engine._queue.count_of("me") == 0
    engine._connection.cancel(job_id)
    assert finish(engine, engine.submit(RUN, SHORT)).status == "finished"
