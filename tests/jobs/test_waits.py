"""core.jobs.waits: why a job has not begun."""

import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from core.config import RunConfig
from core.jobs import waits
from core.jobs.job import Job
from core.jobs.roster import Roster

ANY = Job("any", "", (RunConfig(),), "train")
THERE = Job("there", "", (RunConfig(host="b"),), "train")


@pytest.fixture
def connection():
    """To a scheduler with one worker, which trains on the machine a."""
    roster = Roster()
    takes = {"train": 1, "on a": 1}
    roster.hear({"w": {"last_seen": 1, "resources": takes, "name": "a-train-0"}})
    return SimpleNamespace(
        roster=roster,
        is_up=True,
        no_worker="Nobody took it.",
        is_shared=lambda job_id: job_id == "shared",
    )


def long_ago(job: Job, **more: object) -> Job:
    """The job, had it come before anybody's patience ended."""
    then = time.time() - waits.NO_WORKER_SECONDS - 1
    return replace(job, submitted=then, started=then, **more)


def test_who_waits_for_a_turn_is_told_nothing(connection):
    """Also for a machine that is there, or as long as no scheduler answers."""
    here = replace(THERE, arguments=(RunConfig(host="a"),))
    assert waits.reason(long_ago(ANY), connection) == waits.Wait()
    assert waits.reason(long_ago(here), connection) == waits.Wait()
    connection.is_up = False
    assert waits.reason(long_ago(THERE), connection) == waits.Wait()


@pytest.mark.parametrize("status", ["queued", "starting"])
def test_a_machine_that_is_away_is_waited_for_a_while(connection, status):
    """From when it went, or from when the job came: whichever is later."""
    job = long_ago(THERE, status=status)
    assert not waits.reason(job, connection).is_vain, "it went just now"
    connection.roster._since -= waits.NO_WORKER_SECONDS + 1
    assert waits.reason(job, connection).is_vain
    now = time.time()
    new = replace(job, submitted=now, started=now)
    assert not waits.reason(new, connection).is_vain
    told = waits.AWAY.format("`b`") if status == "queued" else ""
    assert waits.reason(new, connection).message == told


def test_a_job_that_was_handed_out_may_wait_for_another_app(connection):
    job = replace(long_ago(ANY), status="starting")
    assert waits.reason(job, connection) == waits.Wait()
    shared = replace(job, id="shared")
    assert waits.reason(shared, connection) == waits.Wait(waits.SHARED)
