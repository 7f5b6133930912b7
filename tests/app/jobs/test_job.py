from dataclasses import dataclass
from itertools import count
from typing import ClassVar

import pytest

from core.config import RunConfig
from core.jobs import job
from core.jobs.job import Job, Jobs, Outcome, PickedUp, Progress
from core.results import Epoch, Fit, LossPoint, RunResult, Started, StepProgress
from tests.app.samples import PROCESSOR

RUN, RACE = "core.training:run", "core.lessons.compare.race:race"
IDS = count()


@pytest.fixture
def jobs() -> Jobs:
    jobs = Jobs(lambda *_: None)
    jobs.add(Job("a", RUN, (), "train", "ada"))
    jobs.add(Job("b", RUN, (), "train", "bob"))
    return jobs


@pytest.fixture
def few(monkeypatch) -> None:
    monkeypatch.setattr(job, "MOST_OF_ONE", 2)
    monkeypatch.setattr(job, "MOST_OF_ALL", 3)


def ended(jobs: Jobs, owner: str, address: str = RUN) -> str:
    job_id = f"{owner}{next(IDS)}"
    jobs.add(Job(job_id, address, (), "train", owner))
    jobs.end(job_id, Outcome("finished"))
    return job_id


def step(number: int) -> StepProgress:
    return StepProgress(number, (LossPoint(number, 0.1, 0.5),), 100.0, 0.1 * number)


def test_a_job_runs_once_its_worker_says_so(jobs):
    assert jobs.get("a").status == "queued"
    jobs.start("a")
    assert jobs.get("a").status == "starting"
    for event in (PickedUp("train-0"), "one", "two"):
        jobs.receive("a", event)
    jobs.file_events()
    running = jobs.get("a")
    assert (running.status, running.worker) == ("running", "train-0")
    assert running.events == ("one", "two")
    assert jobs.get("a") is running


@pytest.mark.parametrize("jump", [0, 3 * 3600, -3600])
def test_a_job_takes_from_when_its_worker_says_so_to_its_end(jobs, monkeypatch, jump):
    """By a clock that nobody sets: neither a sleep of the laptop nor a wrong date."""
    now = [100.0]
    date = [1e9]
    monkeypatch.setattr(job.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(job.time, "time", lambda: date[0])
    jobs.start("a")
    now[0] = 110.0
    jobs.receive("a", PickedUp("train-0"))
    now[0], date[0] = 113.0, date[0] + jump
    ended = jobs.end("a", Outcome("finished"))
    assert (ended.seconds, ended.stopped) == (3.0, date[0])
    assert jobs.end("b", Outcome("cancelled")).seconds is None


def test_jobs_are_found_by_function_and_owner(jobs):
    assert jobs.ids(RUN, "ada") == jobs.ids(owner="ada") == ["a"]
    assert jobs.ids(RUN) == jobs.ids() == ["a", "b"]
    assert jobs.ids(RACE) == []


@pytest.mark.usefixtures("few")
def test_ones_oldest_is_forgotten_for_ones_newest(jobs):
    race = ended(jobs, "ada", RACE)
    runs = [ended(jobs, owner) for owner in ("bob", "ada", "ada", "ada")]
    assert jobs.ids(RUN) == ["a", "b", runs[0], *runs[2:]]
    assert jobs.ids(RACE) == [race]


@pytest.mark.usefixtures("few")
def test_who_has_most_loses_the_oldest(jobs):
    runs = [ended(jobs, owner) for owner in ("bob", "ada", "ada", "cid")]
    assert jobs.ids(RUN) == ["a", "b", runs[0], *runs[2:]]


def test_a_run_is_the_sum_of_its_reports(jobs):
    started = Started(PROCESSOR, 1, 10, 100, 10)
    epoch = Epoch(1, 2, 1.0, 0.9, 0.8, 10.0, 1e3, 0.5, 0.6)
    reports = (started, step(1), Fit(1, (0.0,), None), step(2), epoch, Fit(2, (), None))
    for report in (*reports, "something else"):
        jobs.receive("a", report)
        jobs.file_events()
        now = jobs.get("a")
    losses = step(1).losses + step(2).losses
    assert now.progress == Progress(started, losses, (epoch,), step(2), reports[-1])
    assert now.events == ("something else",)
    assert jobs.end("a", Outcome("cancelled")).progress == now.progress


def test_a_result_has_what_late_reports_lack(jobs):
    jobs.receive("a", step(1))
    losses = step(1).losses + step(2).losses
    result = RunResult(
        RunConfig(), PROCESSOR, 1, (), losses, 1, 2, 3.0, checkpoint=b"weights"
    )
    ended = jobs.end("a", Outcome("finished", result))
    assert ended.progress.losses == losses
    assert ended.value.checkpoint == b""


@dataclass(frozen=True)
class Lasting:
    lasts: ClassVar[bool] = True


@pytest.mark.parametrize("status", ["finished", "failed"])
def test_a_finished_job_keeps_the_events_that_its_value_lacks(jobs, status):
    reported = ["a", Lasting(), "b"]
    for event in reported:
        jobs.receive("a", event)
    stays = [Lasting()] if status == "finished" else reported
    assert list(jobs.end("a", Outcome(status)).events) == stays


def test_each_event_is_reported_once():
    events = []
    jobs = Jobs(lambda job, event: events.append((job.id, job.events, event)))
    jobs.add(Job("a", RUN, (), "train", "ada"))
    for event in ("one", "two"):
        jobs.receive("a", event)
    jobs.file_events()
    ended = jobs.end("a", Outcome("cancelled", 42))
    jobs.receive("a", "too late")
    jobs.file_events()
    assert jobs.get("a") is ended
    assert (ended.status, ended.value) == ("cancelled", 42)
    assert events == [("a", ("one",), "one"), ("a", ("one", "two"), "two")]


def test_a_look_files_nothing_and_an_end_files_what_came_before_it(jobs):
    events = []
    jobs._on_event = lambda _, event: events.append(event)
    jobs.receive("a", "one")
    assert jobs.get("a").events == ()
    assert events == []
    assert jobs.end("a", Outcome("cancelled")).events == ("one",)
    assert events == ["one"]


def test_an_event_that_can_not_be_stored_holds_up_no_other(jobs):
    def refuse(_: Job, event: object) -> None:
        if event == "one":
            raise TypeError("not plain data")

    jobs._on_event = refuse
    for event in ("one", "two"):
        jobs.receive("a", event)
    jobs.file_events()
    assert jobs.get("a").events == ("one", "two")
