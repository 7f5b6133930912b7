"""What is known of jobs, without a cluster."""

import pickle
import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import ClassVar

import pytest

from core.config import RunConfig
from core.jobs import job
from core.jobs.job import InMemory, Job, Jobs, Outcome, PickedUp
from core.results import Fit, LossPoint, RunResult, Started, StepProgress
from tests.samples import PROCESSOR

RUN = "core.training:run"
IDS = count()


def tell_nobody(_job_id: str, _event: object) -> None:
    pass


@pytest.fixture
def jobs() -> Jobs:
    """One of Ada's and one of Bob's."""
    jobs = Jobs(tell_nobody)
    jobs.add(Job("a", RUN, (), "train", "ada"))
    jobs.add(Job("b", RUN, (), "train", "bob"))
    return jobs


@pytest.fixture
def few(monkeypatch) -> None:
    """Two ended jobs of a person stay, and three in all, of each function."""
    monkeypatch.setattr(job, "IN_MEMORY", InMemory(2, 3))


def ended(jobs: Jobs, owner: str, status: str = "finished", address: str = RUN) -> str:
    """A job that has ended like that."""
    job_id = f"{owner}{next(IDS)}"
    jobs.add(Job(job_id, address, (), "train", owner))
    jobs.end(job_id, Outcome(status))
    return job_id


def result(checkpoint: bytes = b"weights") -> RunResult:
    return RunResult(
        RunConfig(), PROCESSOR, 1, (), (), 1, 2, 3.0, checkpoint=checkpoint
    )


def progress(step: int, *losses: float) -> StepProgress:
    points = tuple(LossPoint(step, 0.1, loss) for loss in losses)
    return StepProgress(step, points, 100.0, 0.1 * step)


def test_a_job_runs_once_its_worker_says_so(jobs):
    """Queued, starting, running, and its events in the order they came."""
    assert jobs.get("a").status == "queued"
    jobs.start("a")
    assert jobs.get("a").status == "starting"
    jobs.receive("a", PickedUp("train-0"))
    jobs.receive("a", "one step")
    assert jobs.get("a").status == "running"
    assert jobs.get("a").events == (PickedUp("train-0"), "one step")


def test_a_job_takes_from_when_its_worker_says_so_to_its_end(jobs, monkeypatch):
    """Also where nobody looked at it in between; a job that never ran took no time."""
    now = [100.0]
    monkeypatch.setattr(job.time, "time", lambda: now[0])
    jobs.start("a")
    now[0] = 110.0
    jobs.receive("a", PickedUp("train-0"))
    now[0] = 113.0
    jobs.end("a", Outcome("finished"))
    jobs.end("b", Outcome("cancelled"))
    assert jobs.get("a").seconds == 3.0
    assert jobs.get("b").seconds is None


def test_a_job_ends_once(jobs):
    """Its outcome and its events stay as they were, whatever comes after."""
    jobs.receive("a", "one step")
    jobs.end("a", Outcome("cancelled", 42))
    ended = jobs.get("a")
    jobs.receive("a", "too late")
    jobs.end("a", Outcome("failed", message="too late"))
    assert jobs.get("a") is ended
    assert (ended.status, ended.value) == ("cancelled", 42)
    assert ended.events == ("one step",)


def test_jobs_are_found_by_function_and_owner(jobs):
    """Other people's are found only by who asks for all."""
    assert jobs.of(RUN, "ada") == ["a"]
    assert jobs.of(RUN) == ["a", "b"]
    assert jobs.of("core.compare.race:race") == []


@pytest.mark.usefixtures("few")
def test_ones_oldest_is_forgotten_for_ones_newest(jobs):
    """Those of others and of other functions stay, and all that go on."""
    race = ended(jobs, "ada", address="core.compare.race:race")
    runs = [ended(jobs, owner) for owner in ("bob", "ada", "ada", "ada")]
    assert jobs.of(RUN) == ["a", "b", runs[0], *runs[2:]]
    assert jobs.of("core.compare.race:race") == [race]


@pytest.mark.usefixtures("few")
def test_who_has_most_loses_the_oldest(jobs):
    """Where there are too many of all people's, one who has few keeps them."""
    runs = [ended(jobs, owner) for owner in ("bob", "ada", "ada", "cid")]
    assert jobs.of(RUN) == ["a", "b", runs[0], *runs[2:]]


def test_events_go_when_the_result_is_there(jobs):
    """All but those that no result tells again."""
    started = Started(PROCESSOR, 1, 10, 100, 10)
    for event in (PickedUp("train-0"), started, progress(1, 0.5), progress(2)):
        jobs.receive("a", event)
    jobs.end("a", Outcome("finished", 42))
    assert jobs.get("a").events == (started,)


def test_a_run_without_a_result_keeps_what_it_learned(jobs):
    """Its losses and its newest state; not a hundred reports of a hundred steps."""
    kept = [progress(1, 0.5), progress(50, 0.4), Fit(80, (1.0,), None), progress(99)]
    passing = [progress(step) for step in range(2, 50)]
    old_fit = Fit(2, (0.0,), None)
    for event in (kept[0], old_fit, *passing, *kept[1:]):
        jobs.receive("a", event)
    jobs.end("a", Outcome("failed", message="why"))
    assert list(jobs.get("a").events) == kept


def test_what_is_filed_is_told_once():
    """In order, with the job's id; what comes after its end is not."""
    told = []
    jobs = Jobs(lambda *news: told.append(news))
    jobs.add(Job("a", RUN, (), "train", "ada"))
    for event in ("one", "two"):
        jobs.receive("a", event)
    jobs.get("a")
    jobs.end("a", Outcome("finished"))
    jobs.receive("a", "too late")
    jobs.file_events()
    assert told == [("a", "one"), ("a", "two")]


def run_of_a_minute(jobs: Jobs, owner: str) -> None:
    """A run with a checkpoint of half a megabyte and 600 reports."""
    job_id = f"{owner}{next(IDS)}"
    jobs.add(Job(job_id, RUN, (), "train", owner))
    for step in range(600):
        jobs.receive(job_id, pickle.loads(pickle.dumps(progress(step, 0.5))))
    jobs.end(job_id, Outcome("finished", result(bytes(450_000))))


@pytest.fixture
def traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.usefixtures("traced")
def test_finished_runs_cost_the_server_next_to_nothing():
    """A run's result stays in memory; its events and its checkpoint do not."""
    jobs = Jobs(tell_nobody)
    run_of_a_minute(jobs, "warm up")
    before = tracemalloc.get_traced_memory()[0]
    for number in range(20):
        run_of_a_minute(jobs, f"person {number}")
    grown = tracemalloc.get_traced_memory()[0] - before
    assert len(jobs.of(RUN)) == 21
    assert grown / 20 < 10_000  # it was 450 kB of checkpoint and 200 kB of events


@dataclass(frozen=True)
class Passing:
    passes: ClassVar[bool] = True
    number: int = 0


def test_what_passes_is_told_by_its_class():
    """Of each kind by itself, the newest stays."""
    events = [Passing(1), "a", Passing(2), progress(1), "b"]
    assert job.lasting(events, finished=False) == ("a", Passing(2), progress(1), "b")
    assert job.lasting(events, finished=True) == ()
