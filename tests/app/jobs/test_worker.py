import json
import logging
import os
import pickle
import re
import sys
import threading
import time

import pytest
import torch

from core import log
from core.jobs import child_process, worker
from core.jobs.job import Outcome
from tests.app.jobs.follow import finish
from to_device.errors import ExplainedError


def test_answer_returns_the_value() -> None:
    outcome = worker.answer("core.ui.format:duration", (80,))
    assert outcome == Outcome("finished", "1 min 20 s")
    assert outcome.get() == "1 min 20 s"


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("core.nothing:here", "ModuleNotFoundError"),
        ("core.nowhere", "ModuleNotFoundError"),
        ("core.devices:resolve", "tpu"),
        ("math:sqrt", "TypeError"),
    ],
)
def test_failures_are_plain_data(address: str, text: str) -> None:
    outcome = worker.answer(address, ("tpu",))
    assert outcome.status == "failed"
    assert outcome.value is None
    assert text in outcome.message
    assert pickle.loads(pickle.dumps(outcome)) == outcome
    with pytest.raises(ExplainedError, match=re.escape(outcome.message)):
        outcome.get()


def test_a_job_has_the_threads_of_its_process(engine):
    """torch holds only a thread that has asked for it to a number."""
    expected = engine.ask("core.devices:training_threads", 64)
    job_id = engine.submit("tests.app.jobs.test_worker:cores_of_a_product")
    assert finish(engine, job_id).value < expected + 0.5


@pytest.mark.skipif(not hasattr(os, "nice"), reason="Windows has no such thing")
def test_the_pages_of_the_server_go_before_its_workers(engine):
    nice = min(19, os.nice(0) + worker.NICE)
    assert engine.ask("os:nice", 0) == nice
    assert finish(engine, engine.submit("os:nice", 0)).value == nice


def test_what_is_logged_in_a_job_has_its_id(engine):
    job_id = engine.submit("tests.app.jobs.test_worker:lines", lane="lab")
    records = finish(engine, job_id).value
    assert [json.loads(line)["run"] for line in records] == [job_id] * 2
    assert "run" not in json.loads(engine.ask("tests.app.jobs.test_worker:line"))


def line() -> str:
    return log.JsonLines(str).format(logging.makeLogRecord({}))


def lines() -> list[str]:
    return [line(), child_process.call("tests.app.jobs.test_worker:line")]


def cores_of_a_product() -> float:
    """CPU seconds for each second that products of matrices take."""
    matrix = torch.rand(1024, 1024)
    began, worked = time.perf_counter(), time.process_time()
    for _ in range(40):
        matrix @ matrix
    return (time.process_time() - worked) / (time.perf_counter() - began)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no server of forks")
def test_a_server_of_forks_that_stops_while_it_warms_up_is_replaced(monkeypatch):
    ended, tries = threading.Event(), []

    def warm_up() -> None:
        tries.append(1)
        ended.wait(60)  # as long as the server is stopped

    for name in ("WARM_UP_SECONDS", "FORKS_SECONDS", "STOPPED_SECONDS"):
        monkeypatch.setattr(worker, name, 0.01)
    monkeypatch.setattr(worker, "_forks", lambda: "" if ended.is_set() else "stopped")
    monkeypatch.setattr(worker, "_end_forks", ended.set)
    keep = threading.Thread(target=worker._keep_forking, args=(warm_up,), daemon=True)
    keep.start()
    assert ended.wait(20)
    assert tries == [1]
    # The thread must not outlive the test with the real functions: it ends on Windows.
    monkeypatch.setattr(sys, "platform", "win32")
    keep.join(20)
    assert not keep.is_alive()
