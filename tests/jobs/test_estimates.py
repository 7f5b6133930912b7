"""How long jobs take, by what was done before, without a cluster."""

from dataclasses import replace
from typing import Any

import pytest

from core.config import RunConfig
from core.jobs import estimates
from core.jobs.estimates import Estimates, work
from core.jobs.job import Job

RUN, RACE = "core.training:run", "core.compare.race:race"
CONFIG = RunConfig(task="sprites", epochs=4)
NOW = 1000.0


def job(*arguments: Any, address: str = RUN, **more: Any) -> Job:
    return Job("a", address, arguments, "train", work=work(address, arguments), **more)


def done(seconds: float, *arguments: Any, status: str = "finished", **more: Any) -> Job:
    """A job that took so long."""
    return job(*arguments, status=status, started=1.0, stopped=1.0 + seconds, **more)


def seen(*jobs: Job) -> Estimates:
    found = Estimates()
    for each in jobs:
        found.learn(each)
    return found


@pytest.fixture(autouse=True)
def clock(monkeypatch) -> None:
    """It is always NOW."""
    monkeypatch.setattr(estimates.time, "time", lambda: NOW)


def test_without_history_nothing_is_said():
    assert Estimates().seconds(job(CONFIG)) is None
    assert Estimates().until_turn([job(CONFIG, started=NOW)], []) is None


def test_an_estimate_is_the_median_of_like_jobs():
    """One that was disturbed does not count for more than the others."""
    known = seen(*(done(s, CONFIG) for s in (10, 11, 90)))
    assert known.seconds(job(CONFIG)) == 11


@pytest.mark.parametrize(
    "change", [{"seed": 7}, {"learning_rate": 0.1}, {"weight_decay": 0.1}]
)
def test_what_costs_no_time_makes_no_difference(change):
    assert seen(done(10, CONFIG)).seconds(job(replace(CONFIG, **change))) == 10


@pytest.mark.parametrize(
    "change",
    [
        {"model": "cnn"},
        {"task": "fashion-mnist"},
        {"device": "cpu"},
        {"feed": "device"},
        {"batch_size": 128},
        {"augment": True},
    ],
)
def test_other_work_is_not_like_it(change):
    """Nothing is said of it, however much of this was done."""
    assert seen(done(10, CONFIG)).seconds(job(replace(CONFIG, **change))) is None


def test_another_function_or_other_arguments_are_not_like_it():
    known = seen(done(10, CONFIG, 300, address=RACE))
    assert known.seconds(job(CONFIG, 300, address=RACE)) == 10
    assert known.seconds(job(CONFIG, 301, address=RACE)) is None
    assert known.seconds(job(CONFIG, 300)) is None


@pytest.mark.parametrize(
    ("epochs", "expected"), [(1, None), (2, 5), (4, 10), (8, 20), (9, None), (50, None)]
)
def test_a_run_of_many_epochs_is_not_like_one_of_few(epochs, expected):
    """Half as many and twice as many are, in proportion."""
    known = seen(done(10, CONFIG))
    assert known.seconds(job(replace(CONFIG, epochs=epochs))) == expected


def test_only_what_came_to_its_end_is_an_estimate():
    """But it weighs: what ran for its limit is not let in as if it were quick."""
    known = seen(done(1000, CONFIG, status="failed"))
    assert known.seconds(job(CONFIG)) is None
    assert known.weight(job(CONFIG)) == 1000


def test_what_is_unknown_weighs_by_its_size():
    """A long run weighs more than a short one before any was made."""
    short, long = (job(replace(CONFIG, epochs=epochs)) for epochs in (5, 50))
    assert Estimates().weight(long) == 10 * Estimates().weight(short) == 60
    assert Estimates().weight(job(address=RACE)) == 60
    assert seen(done(1, replace(CONFIG, epochs=5))).weight(long) == 10


def test_the_wait_is_what_is_left_and_what_is_before():
    """Of the running job the rest, of the waiting ones all."""
    known = seen(done(10, CONFIG))
    running, waiting = job(CONFIG, started=NOW - 4), job(CONFIG)
    assert known.until_turn([running], []) == 6
    assert known.until_turn([running], [waiting, waiting]) == 26


def test_two_workers_share_the_wait():
    """Each takes the next job when it is free."""
    known = seen(done(10, CONFIG))
    running = [job(CONFIG, started=NOW - 4), job(CONFIG, started=NOW - 8)]
    assert [known.until_turn(running, [job(CONFIG)] * n) for n in range(4)] == [
        *(2, 6, 12, 16)
    ]


def test_one_job_of_unknown_length_makes_the_wait_unknown():
    """So does one that runs for longer than its like did."""
    known, other = seen(done(10, CONFIG)), job(replace(CONFIG, model="cnn"))
    running = job(CONFIG, started=NOW - 4)
    assert known.until_turn([running], [other]) is None
    assert known.until_turn([replace(other, started=NOW)], []) is None
    assert known.until_turn([replace(running, started=NOW - 11)], []) is None


def test_a_bounded_number_of_kinds_is_remembered(monkeypatch):
    """Those that were done last."""
    monkeypatch.setattr(estimates, "KINDS", 2)
    configs = [replace(CONFIG, batch_size=size) for size in (16, 32, 64)]
    known = seen(*(done(1, configs[i]) for i in (0, 1, 0, 2)))
    assert [known.seconds(job(each)) for each in configs] == [1, None, 1]
