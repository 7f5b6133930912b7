import time
from dataclasses import replace

import pytest

from core.config import RunConfig
from core.jobs.dask_connection import NO_WORKER_SECONDS, Connection, words
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
