import time
from dataclasses import replace

import pytest

from core.config import RunConfig
from core.jobs import estimates as module
from core.jobs.estimates import Estimates, spoken
from core.jobs.job import Job
from core.results import Progress, Started, StepProgress
from tests.app.jobs.follow import done, job
from tests.app.samples import PROCESSOR

RACE = "core.lessons.compare.race:race"
CONFIG = RunConfig(task="sprites", epochs=4)
NOW = 1000.0


def learn(*jobs: Job) -> Estimates:
    estimates = Estimates()
    for each in jobs:
        estimates.learn(each)
    return estimates


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


@pytest.fixture
def clock(monkeypatch) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: NOW)


def test_an_estimate_is_the_median_of_like_jobs():
    estimates = learn(*(done(s, CONFIG) for s in (10, 11, 90)))
    assert estimates.seconds(job(CONFIG)) == 11


def test_what_ended_long_before_the_newest_does_not_count(monkeypatch):
    """The machine may be busier now."""
    now = NOW
    monkeypatch.setattr(time, "monotonic", lambda: now)
    estimates = learn(done(5, CONFIG))
    running = replace(job(CONFIG), began=now)
    assert estimates.until_turn([running], []) == 5
    now += module.RECENT_SECONDS + 1
    assert estimates.seconds(job(CONFIG)) == 5
    assert estimates.until_turn([replace(running, began=now)], []) is None
    estimates.learn(done(80, CONFIG))
    assert estimates.seconds(job(CONFIG)) == 80
    assert estimates.spread(job(CONFIG)) == 1
    estimates.learn(done(40, CONFIG))
    assert estimates.spread(job(CONFIG)) == 2
    assert estimates.until_turn([replace(running, began=now)], []) == 60


def test_another_kind_of_run_tells_how_much_the_machine_varies(monkeypatch):
    other = replace(CONFIG, batch_size=2 * CONFIG.batch_size)
    estimates = learn(done(5, CONFIG), done(15, CONFIG), done(2, other))
    assert estimates.spread(job(other)) == 3
    estimates = learn(done(1, RACE), done(9, RACE), done(2, other))
    assert estimates.spread(job(other)) == 1  # a measurement's first call loads more
    estimates = learn(done(5, CONFIG), done(15, CONFIG))
    estimates.learn(done(4, CONFIG, owner="ada"))
    estimates.learn(done(8, CONFIG, owner="ada"))
    estimates.learn(done(2, other))
    assert estimates.spread(job(other)) == 2  # the app ran while nobody else did
    later = NOW + module.RECENT_SECONDS + 1
    monkeypatch.setattr(time, "monotonic", lambda: later)
    estimates.learn(done(2, other))
    assert estimates.spread(job(other)) == 1


@pytest.mark.parametrize(
    "change", [{"seed": 7}, {"learning_rate": 0.1}, {"weight_decay": 0.1}]
)
def test_what_costs_no_time_makes_no_difference(change):
    assert learn(done(10, CONFIG)).seconds(job(replace(CONFIG, **change))) == 10


def test_another_function_or_other_arguments_are_not_like_it():
    estimates = learn(done(10, CONFIG, 300, address=RACE))
    assert estimates.seconds(job(CONFIG, 300, address=RACE)) == 10
    assert estimates.seconds(job(CONFIG, 301, address=RACE)) is None
    assert estimates.seconds(job(CONFIG, 300)) is None
    larger = replace(CONFIG, batch_size=128)
    assert estimates.seconds(job(larger, 300, address=RACE)) is None


@pytest.mark.parametrize(
    ("epochs", "expected"), [(1, None), (2, 5), (4, 10), (8, 20), (9, None), (50, None)]
)
def test_a_run_of_many_epochs_is_not_like_one_of_few(epochs, expected):
    like = job(replace(CONFIG, epochs=epochs))
    assert learn(done(10, CONFIG)).seconds(like) == expected


def test_only_what_came_to_its_end_is_an_estimate():
    """But it weighs: what ran for its limit is not let in as if it were quick."""
    estimates = learn(done(1000, CONFIG, status="failed"))
    assert estimates.seconds(job(CONFIG)) is None
    assert estimates.weight(job(CONFIG)) == 1000


def test_what_is_unknown_weighs_by_its_size():
    short, long = (job(replace(CONFIG, epochs=epochs)) for epochs in (5, 50))
    assert Estimates().weight(long) == 10 * Estimates().weight(short) == 60
    assert Estimates().weight(job(address=RACE)) == 60
    assert learn(done(1, replace(CONFIG, epochs=5))).weight(long) == 10


@pytest.mark.usefixtures("clock")
def test_the_wait_is_what_is_left_and_what_is_before():
    estimates = learn(done(10, CONFIG))
    begun = Progress(Started(PROCESSOR, 1, 100, 100, 10))
    running, waiting = job(CONFIG, began=NOW - 4, progress=begun), job(CONFIG)
    assert estimates.until_turn([running], []) == 6
    assert estimates.until_turn([running], [waiting, waiting]) == 26
    two = [running, replace(running, began=NOW - 8)]
    waits = [estimates.until_turn(two, [waiting] * number) for number in range(4)]
    assert waits == [2, 6, 12, 16]
    late = replace(running, began=NOW - 11)
    assert estimates.until_turn([late], []) == 0
    assert estimates.until_turn([late], [waiting]) == 10
    # Its worker still loads torch, so nothing of the run is over.
    loading = job(CONFIG, began=NOW - 4)
    assert estimates.until_turn([loading], []) == 10


@pytest.mark.usefixtures("clock")
def test_one_job_of_unknown_length_makes_the_wait_unknown():
    estimates, other = learn(done(10, CONFIG)), job(replace(CONFIG, model="cnn"))
    running = job(CONFIG, began=NOW - 4)
    assert estimates.seconds(other) is None
    assert estimates.until_turn([running], [other]) is None
    assert estimates.until_turn([replace(other, began=NOW)], []) is None


@pytest.mark.usefixtures("clock")
def test_the_steps_of_a_run_tell_how_long_others_like_it_wait():
    started = Started(PROCESSOR, 1, 100, 100, 10)
    half = Progress(started, latest=StepProgress(50, (), 1.0, 11.0))
    running, twice = (
        replace(job(config, began=NOW - 12), progress=half)
        for config in (CONFIG, replace(CONFIG, epochs=8))
    )
    assert learn(done(10, CONFIG)).until_turn([running], [job(CONFIG)]) == 11 + 23
    assert Estimates().until_turn([running], [job(CONFIG)]) == 11 + 23
    assert Estimates().until_turn([twice], [job(CONFIG)]) == 11 + 23 / 2


def test_other_arguments_of_a_lab_tell_roughly_how_long_it_takes(monkeypatch):
    """A class waits for each other's code, which nobody has run before."""
    now = NOW
    monkeypatch.setattr(time, "monotonic", lambda: now)
    estimates = learn(done(6, "some code", address=RACE), done(10, CONFIG))
    mine, running = (job(text, address=RACE) for text in ("mine", "theirs"))
    running = replace(running, began=NOW - 2)
    assert estimates.seconds(mine) is None
    assert estimates.until_turn([running], []) == 4
    assert estimates.until_turn([running], [mine]) == 10
    now += module.RECENT_SECONDS + 1
    assert estimates.until_turn([running], []) is None


def test_a_bounded_number_of_kinds_is_remembered(monkeypatch):
    monkeypatch.setattr(module, "KINDS", 2)
    configs = [replace(CONFIG, batch_size=size) for size in (16, 32, 64)]
    estimates = learn(*(done(1, configs[i]) for i in (0, 1, 0, 2)))
    assert [estimates.seconds(job(config)) for config in configs] == [1, None, 1]
