"""What is let into the queue, without a cluster."""

from itertools import count

import pytest

from core.config import RunConfig
from core.errors import ExplainedError
from core.jobs.estimates import Estimates, work
from core.jobs.job import Job
from core.jobs.limits import Limits, overdue, spoken
from core.jobs.queue import Queue

RUN = "core.training:run"
DEFAULT, HALF_AN_HOUR = RunConfig(), RunConfig.with_recipe(model="cnn", epochs=50)
IDS = count()


class Server:
    """Limits, a queue, and what was done before."""

    def __init__(self, **limits: int) -> None:
        self.limits, self.queue = Limits(**limits), Queue()
        self.estimates = Estimates()

    def submit(self, owner: str, config: RunConfig = DEFAULT, lane: str = "train"):
        todo = work(RUN, (config,))
        job = Job(str(next(IDS)), RUN, (config,), lane, owner, work=todo)
        self.limits.check(job, self.queue, self.estimates)
        self.queue.add(job)
        return job

    def did(self, config: RunConfig, seconds: float) -> None:
        """A run like that took so long here."""
        todo = work(RUN, (config,))
        times = {"started": 1.0, "stopped": 1.0 + seconds}
        job = Job("", RUN, (config,), "train", "", "finished", work=todo, **times)
        self.estimates.learn(job)

    def refused(self, *arguments: object) -> str:
        """Why it is not let in."""
        with pytest.raises(ExplainedError) as error:
            self.submit(*arguments)
        return str(error.value)


@pytest.mark.parametrize("seconds", [None, 5, 60])
def test_a_class_fits(seconds):
    """A hundred people, each with one run of up to a minute, known or not."""
    server = Server()
    if seconds is not None:
        server.did(DEFAULT, seconds)
    for number in range(100):
        server.submit(f"person {number}")
    assert len(server.queue) == 100


def test_a_person_has_so_many_and_the_next_is_let_in():
    """Waiting and running ones count, in all lanes; what has ended does not."""
    server = Server(max_jobs_per_person=2)
    running = server.submit("ada")
    server.queue.take(running)
    server.submit("ada", DEFAULT, "lab")
    assert "You have 2 jobs" in server.refused("ada")
    server.submit("bob")
    server.queue.remove(running.id)
    server.submit("ada")


def test_the_servers_own_jobs_have_no_cap():
    """Without an owner they are nobody's click."""
    server = Server(max_jobs_per_person=1)
    for _ in range(5):
        server.submit("")


def test_the_queue_has_an_end():
    """Each lane has one; whoever comes then is told."""
    server = Server(max_waiting_jobs=3)
    for number in range(3):
        server.submit(f"cookie {number}")
    assert "3 jobs are waiting already" in server.refused("bob")
    server.submit("bob", DEFAULT, "lab")


@pytest.mark.parametrize("known", [None, 600.0])
def test_a_script_with_fresh_cookies_queues_no_hours_of_work(known):
    """Twenty long runs: those that make an hour wait, and a class still fits."""
    server = Server()
    if known is not None:
        server.did(HALF_AN_HOUR, known)
    hour = 3600 // int(known or 300)
    for number in range(hour):
        server.submit(f"cookie {number}", HALF_AN_HOUR)
    for number in range(hour, 20):
        assert "an hour of work" in server.refused(f"cookie {number}", HALF_AN_HOUR)
    for number in range(100):
        server.submit(f"person {number}")


def test_a_run_that_would_be_cut_is_refused_at_once():
    """Where the like took longer than a job may; so nobody waits for nothing."""
    server = Server(max_job_seconds=100)
    server.did(DEFAULT, 130)
    said = server.refused("ada")
    assert "would take about 2 minutes here, and a job may take 100 seconds" in said


def test_a_refusal_changes_nothing():
    """Neither the order nor how many one may have."""
    server = Server(max_jobs_per_person=1)
    server.submit("ada")
    for _ in range(3):
        server.refused("ada")
    assert [job.owner for job in server.queue.waiting("train")] == ["ada"]


def test_limits_are_set_by_the_environment(monkeypatch):
    """By their names in capitals; the others stay."""
    monkeypatch.setenv("MAX_JOB_SECONDS", "90")
    monkeypatch.setenv("MAX_WAITING_JOBS", "")
    assert Limits.from_environment() == Limits(max_job_seconds=90)
    assert "after 90 seconds" in overdue(Limits.from_environment().seconds(None))


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "many", "²"])
def test_a_limit_that_is_no_number_is_a_sentence(monkeypatch, text):
    """The server does not start with half of what was asked for."""
    monkeypatch.setenv("MAX_WAITING_JOBS", text)
    with pytest.raises(ExplainedError, match="MAX_WAITING_JOBS must be a whole number"):
        Limits.from_environment()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        *((0.5, "0.5 seconds"), (1.5, "1.5 seconds"), (60, "a minute")),
        *((90, "90 seconds"), (120, "2 minutes"), (3600, "an hour")),
        *((5000, "83 minutes"), (7200, "2 hours")),
    ],
)
def test_durations_are_spoken(seconds, text):
    assert spoken(seconds) == text
