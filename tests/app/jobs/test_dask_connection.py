import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from core.config import RunConfig
from core.jobs.dask_connection import (
    BUSY_SECONDS,
    NO_WORKER_SECONDS,
    REPLACE_SECONDS,
    Connection,
    words,
)
from core.jobs.hosts import TELL_SECONDS
from core.jobs.job import Job

ANY = Job("any", "", (RunConfig(),), "train")
THERE = Job("there", "", (RunConfig(host="b"),), "train")
HERE = replace(THERE, arguments=(RunConfig(host="a"),))


@pytest.fixture
def there(monkeypatch) -> Connection:
    """To a scheduler with one worker, which trains on the machine a."""
    there = Connection(None, *[lambda *_: None] * 4)
    takes = {"train": 1, "on a": 1}
    there.hosts.update({"w": {"last_seen": 1, "resources": takes, "name": "a-train-0"}})
    monkeypatch.setattr(Connection, "is_up", True)
    return there


def long_ago(job: Job, **more: object) -> Job:
    then = time.monotonic() - NO_WORKER_SECONDS - 1
    return replace(job, arrived=then, began=then, **more)


def test_a_job_that_waits_for_its_turn_has_no_obstacle(there, monkeypatch):
    assert (
        there.obstacle(long_ago(ANY)) == there.obstacle(long_ago(HERE)) == ("", False)
    )
    monkeypatch.setattr(Connection, "is_up", False)
    assert there.obstacle(long_ago(THERE)) == ("", False)


@pytest.mark.parametrize("status", ["queued", "starting"])
def test_a_machine_that_is_away_is_waited_for_a_while(there, status):
    job = long_ago(THERE, status=status)
    assert not there.obstacle(job)[1], "it went just now"
    there.hosts._since -= NO_WORKER_SECONDS + 1
    assert there.obstacle(job)[1]
    now = time.monotonic()
    message = words("workers.host_away", host="`b`") if status == "queued" else ""
    assert there.obstacle(replace(job, arrived=now, began=now)) == (message, False)


def test_a_job_that_was_handed_out_may_wait_for_another_app(there):
    job = replace(long_ago(ANY), status="starting")
    assert there.obstacle(job) == ("", False)
    there._shared = {job.id}
    assert there.obstacle(job) == (words("workers.shared"), False)


class Own:
    """A cluster of the app's own whose scheduler does not answer."""

    problem, has_ended = "", False

    def __init__(self, hangs: bool) -> None:
        self.hangs = hangs

    def kill(self) -> None:
        self.has_ended = True


@pytest.mark.parametrize(
    ("hangs", "seconds", "is_ended"),
    [
        (True, REPLACE_SECONDS, True),
        (False, REPLACE_SECONDS, False),
        (False, BUSY_SECONDS, True),
    ],
)
def test_an_own_scheduler_is_ended_if_it_hangs_and_has_time_if_it_is_busy(
    there, monkeypatch, hangs, seconds, is_ended
):
    there._cluster = Own(hangs)
    dropped: list[object] = []
    monkeypatch.setattr(there, "_drop", dropped.append)
    there.hosts._updated = time.monotonic() - seconds - 1
    there._when_silent("client")
    assert there._cluster.has_ended == bool(dropped) == is_ended


def test_a_scheduler_of_somebody_else_is_left_alone(there, monkeypatch):
    dropped: list[object] = []
    monkeypatch.setattr(there, "_drop", dropped.append)
    there._when_silent("client")
    assert dropped == ["client"]


def test_what_is_silent_is_told_on_the_page_of_its_job_alone(there, monkeypatch):
    there._client = "client"
    mine = replace(ANY, status="running", worker="a-train-0")
    theirs = replace(mine, worker="b-train-0")
    assert (there.obstacle(mine), there.problem) == (("", False), "")
    (worker,) = there.hosts._workers.values()
    silent = worker._replace(noticed=time.monotonic() - TELL_SECONDS)
    monkeypatch.setattr(there.hosts, "_workers", {"w": silent})
    assert there.obstacle(mine) == (words("workers.silent"), False)
    assert there.obstacle(theirs) == ("", False)
    there._scheduler = "tcp://elsewhere"
    assert there.obstacle(mine) == (words("workers.silent_elsewhere"), False)
    there.hosts._updated -= TELL_SECONDS
    assert there.problem == words("workers.silent_scheduler")


@pytest.mark.parametrize(
    ("own", "seconds", "asked"),
    [
        (True, REPLACE_SECONDS - 5, []),
        (True, REPLACE_SECONDS, ["kill_if_hung"]),
        (True, BUSY_SECONDS, ["kill"]),
        (False, BUSY_SECONDS, []),
    ],
)
def test_a_silent_worker_is_killed_if_it_is_the_apps_and_hangs_or_is_long_silent(
    there, monkeypatch, own, seconds, asked
):
    called: list[str] = []

    class Client:
        def run(self, function: Callable[..., object], **_: object) -> dict:
            called.append(function.__name__)
            return {}

    monkeypatch.setattr(
        "core.jobs.dask_connection.in_background", lambda work, *rest: work(*rest)
    )
    there._cluster = Own(hangs=False) if own else None
    (worker,) = there.hosts._workers.values()
    silent = worker._replace(noticed=time.monotonic() - seconds)
    monkeypatch.setattr(there.hosts, "_workers", {"w": silent})
    for _ in range(2):  # the second time is too soon
        there._replace_silent(Client())
    assert called == asked
