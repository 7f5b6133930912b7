"""The engine against a real cluster: queue, cancel, faults, and nothing left behind."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest

from core.config import RunConfig
from core.errors import ExplainedError
from core.jobs.cluster import ROOT
from core.jobs.engine import Engine
from core.jobs.job import Job, PickedUp
from core.results import StepProgress
from tests.jobs.follow import (
    LONG,
    RUN,
    SHORT,
    finish,
    running,
    status,
    train_worker,
    wait,
)
from tests.process import that_go_on

told: list[Job] = []  # the jobs of `own_engine` that ended


@pytest.fixture(scope="module")
def own_engine() -> Iterator[Engine]:
    """An engine that tests may harm; it has to recover each time."""

    def tell(job: Job) -> None:
        told.append(job)
        raise RuntimeError("no fault of the job")

    engine = Engine(on_end=tell)
    engine.ask("core.devices:describe", seconds=120)
    yield engine
    engine.close()


def test_jobs_of_a_lane_wait_in_the_order_they_came(engine):
    """Jobs of a lane wait in the order they came, and each knows its place."""
    first, second, third = (
        engine.submit(RUN, config) for config in (LONG, SHORT, SHORT)
    )
    running(engine, first)
    assert [engine.job(i).place for i in (first, second, third)] == [0, 1, 2]
    engine.cancel(first)
    done = [finish(engine, job_id) for job_id in (second, third)]
    assert [job.status for job in done] == ["finished", "finished"]
    assert done[0].started < done[1].started


def test_a_cancelled_run_keeps_what_it_learned(engine):
    """A running job that is cancelled ends as cancelled and keeps its events."""
    job_id = engine.submit(RUN, LONG)
    running(engine, job_id)
    engine.cancel(job_id)
    job = finish(engine, job_id)
    assert job.status == "cancelled"
    assert isinstance(job.events[0], PickedUp)
    assert any(isinstance(event, StepProgress) for event in job.events)


def test_a_waiting_job_is_cancelled_without_a_worker(engine):
    """A job that still waits is cancelled at once, and never picked up."""
    first, second = engine.submit(RUN, LONG), engine.submit(RUN, SHORT)
    running(engine, first)
    engine.cancel(second)
    assert status(engine, second) == "cancelled"
    engine.cancel(first)
    finish(engine, first)
    assert engine.job(second).events == ()


def test_a_run_is_cancelled_while_its_worker_starts(own_engine):
    """Cancelling counts also when no worker is there yet that could hear it."""
    finish(own_engine, own_engine.submit(RUN, SHORT))
    train_worker(own_engine).kill()
    wait(lambda: "train" not in own_engine._connection.capacity())
    job_id = own_engine.submit(RUN, SHORT)
    assert status(own_engine, job_id) == "starting"
    own_engine.cancel(job_id)
    assert status(own_engine, job_id) == "cancelled"
    done = finish(own_engine, own_engine.submit(RUN, SHORT))
    assert done.status == "finished"
    # Whoever is told of ends is told of each, once, with what came of it.
    assert told[-1] is done
    assert [job.status for job in told if job.id == job_id] == ["cancelled"]


def test_the_lab_answers_while_a_run_goes_on(engine):
    """A quick question is answered while the training lane is busy."""
    job_id = engine.submit(RUN, LONG)
    running(engine, job_id)
    assert engine.ask("core.devices:describe").cores >= 1
    assert status(engine, job_id) == "running"
    engine.cancel(job_id)
    finish(engine, job_id)


def test_a_loss_that_overflows_fails_the_run_with_advice(engine):
    """A run whose loss is no longer finite fails, says where and what to try."""
    bad = RunConfig(task="sprites", learning_rate=1e25)
    job = finish(engine, engine.submit(RUN, bad))
    assert job.status == "failed"
    assert "at step" in job.message
    assert "learning rate" in job.message


def test_a_failing_question_is_an_explained_error(engine, missing_device):
    """What goes wrong in the lab arrives as one sentence."""
    with pytest.raises(ExplainedError, match=f"no {missing_device} device"):
        engine.ask("core.devices:resolve", missing_device)


def test_events_of_one_owner_are_found_again(engine):
    """Jobs are found by their owner, and other owners' are not."""
    job_id = engine.submit(RUN, SHORT, owner="ada")
    assert [job.id for job in engine.jobs(RUN, "ada")] == [job_id]
    assert engine.jobs(RUN, "nobody") == []
    finish(engine, job_id)


def test_a_killed_worker_fails_its_run_and_the_next_run_works(own_engine):
    """A run whose worker is killed fails within 5 s; waiting runs are not harmed."""
    lost = own_engine.submit(RUN, LONG)
    waiting = own_engine.submit(RUN, SHORT)
    running(own_engine, lost)
    train_worker(own_engine).kill()
    wait(lambda: own_engine.job(lost).ended, seconds=5)
    assert status(own_engine, lost) == "failed"
    assert "worker process ended" in own_engine.job(lost).message
    assert finish(own_engine, waiting).status == "finished"


def test_a_killed_cluster_is_started_again(own_engine):
    """When the whole cluster dies its run fails, and the next run works."""
    lost = own_engine.submit(RUN, LONG)
    running(own_engine, lost)
    own_engine._connection._cluster._process.kill()
    wait(lambda: own_engine.job(lost).ended, seconds=5)
    assert status(own_engine, lost) == "failed"
    assert finish(own_engine, own_engine.submit(RUN, SHORT)).status == "finished"


@pytest.mark.skipif(sys.platform != "linux", reason="limits a process's memory")
def test_a_run_without_memory_fails_with_a_smaller_batch_to_try(own_engine):
    """A run that the host has no memory for fails with advice; the next run works."""
    finish(own_engine, own_engine.submit(RUN, SHORT))
    worker = train_worker(own_engine)
    before = worker.rlimit(psutil.RLIMIT_AS)
    worker.rlimit(psutil.RLIMIT_AS, (worker.memory_info().vms + 2**28, before[1]))
    greedy = RunConfig(task="sprites", model="cnn", batch_size=4096, epochs=1)
    job = finish(own_engine, own_engine.submit(RUN, greedy))
    assert job.status == "failed"
    assert "Try 1,024" in job.message
    worker.rlimit(psutil.RLIMIT_AS, before)
    assert finish(own_engine, own_engine.submit(RUN, SHORT)).status == "finished"


def a_full_device(_config: RunConfig) -> None:
    """What torch raises where an accelerator has no memory left."""
    import torch

    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB.")


def test_a_full_device_fails_the_run_with_a_smaller_batch_to_try(engine):
    """The device's own error arrives as advice; the next run works."""
    greedy = RunConfig(batch_size=4096)
    job = finish(engine, engine.submit("tests.jobs.test_engine:a_full_device", greedy))
    assert job.status == "failed"
    assert "Try 1,024" in job.message
    assert finish(engine, engine.submit(RUN, SHORT)).status == "finished"


def spoil() -> int:
    """No device works in this process any more, as after an assertion in a kernel."""
    from core import devices

    devices.usable = lambda _: False
    return os.getpid()


def test_a_spoiled_device_harms_no_other_run(own_engine):
    """The next run finds out, and is made by another process."""
    spoiled = finish(own_engine, own_engine.submit("tests.jobs.test_engine:spoil"))
    assert finish(own_engine, own_engine.submit(RUN, SHORT)).status == "finished"
    assert train_worker(own_engine).pid != spoiled.value


def test_an_engine_can_join_a_cluster_that_is_there(engine):
    """With a scheduler's address, work runs there, and closing leaves it up."""
    guest = Engine(engine._connection._client.scheduler.address)
    assert finish(guest, guest.submit(RUN, SHORT)).status == "finished"
    guest.close()
    assert engine.ask("core.devices:describe").cores >= 1


def test_a_scheduler_that_is_not_there_is_a_sentence(monkeypatch):
    """An address where nothing listens gives a problem in words, and no hang."""
    monkeypatch.setattr("core.jobs.connection.CONNECT_SECONDS", 1.0)
    engine = Engine("tcp://127.0.0.1:9")
    with pytest.raises(ExplainedError, match=r"127\.0\.0\.1:9 can't be reached"):
        engine.ask("core.devices:describe", seconds=10)
    engine.close()


def test_a_killed_server_leaves_no_process_and_never_imports_torch():
    """Kill -9 of the process that holds the engine ends all of the cluster with it."""
    script = """
import sys, time
from core.jobs.engine import Engine
from core.config import RunConfig
engine = Engine()
job = engine.submit("core.training:run", RunConfig(task="sprites", epochs=1))
while not engine.job(job).ended:
    time.sleep(0.1)
print("finished", "torch" in sys.modules, flush=True)
time.sleep(600)
"""
    server = subprocess.Popen(
        [sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert server.stdout.readline().strip() == "finished False"
    family = psutil.Process(server.pid).children(recursive=True)
    assert len(family) >= 3  # the cluster and its two workers
    server.send_signal(signal.SIGKILL)
    server.wait()
    assert list(that_go_on(family, seconds=15)) == []
