"""What is known of jobs, without a cluster."""

import pytest

from core.jobs import job
from core.jobs.job import Job, Jobs, Outcome, PickedUp


@pytest.fixture
def jobs() -> Jobs:
    """One of Ada's and one of Bob's."""
    jobs = Jobs()
    jobs.add(Job("a", "core.training:run", (), "train", "ada"))
    jobs.add(Job("b", "core.training:run", (), "train", "bob"))
    return jobs


def test_a_job_runs_once_its_worker_says_so(jobs):
    """Queued, starting, running, and its events in the order they came."""
    assert jobs.get("a").status == "queued"
    jobs.start("a")
    assert jobs.get("a").status == "starting"
    jobs.receive("a", PickedUp("train-0"))
    jobs.receive("a", "one step")
    assert jobs.get("a").status == "running"
    assert jobs.get("a").events == (PickedUp("train-0"), "one step")


def test_a_job_ends_once(jobs):
    """Its outcome and its events stay as they were, whatever comes after."""
    jobs.receive("a", "one step")
    jobs.end("a", Outcome("finished", 42))
    ended = jobs.get("a")
    jobs.receive("a", "too late")
    jobs.end("a", Outcome("failed", message="too late"))
    assert jobs.get("a") is ended
    assert (ended.status, ended.value, ended.events) == ("finished", 42, ("one step",))


def test_jobs_are_found_by_function_and_owner(jobs):
    """Other people's are found only by who asks for all."""
    assert jobs.of("core.training:run", "ada") == ["a"]
    assert jobs.of("core.training:run") == ["a", "b"]
    assert jobs.of("core.compare.race:race") == []


def test_the_oldest_ended_jobs_are_forgotten(jobs, monkeypatch):
    """A bounded number of ended jobs is kept, the newest; those that go on all stay."""
    monkeypatch.setattr(job, "KEPT", 1)
    for name in ("c", "d"):
        jobs.add(Job(name, "core.training:run", (), "train"))
        jobs.end(name, Outcome("finished"))
    jobs.add(Job("e", "core.training:run", (), "train"))
    assert jobs.get("c") is None
    assert [jobs.get(name).status for name in "abde"] == [
        "queued",
        "queued",
        "finished",
        "queued",
    ]
