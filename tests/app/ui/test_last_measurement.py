import time
from dataclasses import replace
from datetime import date
from unittest.mock import Mock

import pytest

from core.jobs.job import Job
from core.jobs.measurements import KINDS, keep
from core.lessons.compare.race_page import RaceLab
from core.lessons.compare.race_result import Race
from core.store.codec import StoreError
from core.store.tables import Member
from core.ui import last_measurement as measured
from core.ui import server
from tests.app import samples
from tests.app.jobs.follow import finish, wait

RACE = "core.lessons.compare.race:race"
MEMBER = Member("c", "ada", "Ada", joined=0.0, runs=0)
COPIES = "core.lessons.speed.copies:measure"
KINDS.update((RACE, COPIES))  # as their pages do


def job(value: object, seconds: float = 0, **more: object) -> Job:
    """A measurement of so long ago."""
    ended = {"status": "finished", "stopped": time.time() - seconds, "owner": "ada"}
    arguments = more.pop("arguments", ())
    return Job("id", RACE, arguments, "train", value=value, **ended | more)


@pytest.fixture
def here(engine, monkeypatch):
    """Names the machine that the pages are about."""

    def be(identity: str) -> None:
        known_machine = replace(samples.machine("CPU"), identity=identity)
        monkeypatch.setattr(type(engine), "machine", lambda _: known_machine)

    return be


def test_what_a_visitor_measures_is_there_for_the_next_one(engine, monkeypatch):
    wait(lambda: engine.machine() is not None)
    done = finish(engine, engine.submit(COPIES, "cpu", owner="ada"))

    def is_kept() -> bool:
        newest_job = measured.newest(COPIES)
        return newest_job is not None and newest_job.stopped == done.stopped

    wait(is_kept)
    newest_job = measured.newest(COPIES)
    assert (newest_job.value, newest_job.arguments, newest_job.owner) == (
        done.value,
        ("cpu",),
        "ada",
    )
    for visitor, ending in (("ada", "by you."), ("bob", "by somebody in this course.")):
        monkeypatch.setattr(measured, "visitor", lambda name=visitor: name)
        assert measured.sentence(newest_job).endswith(ending)


def test_nothing_from_elsewhere_is_shown_as_measured_here(here):
    measurements = server.store().measurements
    for machine, steps in (("one", 3), ("two", 4)):
        value = replace(samples.RACE, steps=steps)
        keep(measurements, job(value, machine=machine))
    server.store().writer.flush()
    for machine, steps in (("one", 3), ("two", 4)):
        here(machine)
        assert measured.newest(RACE).value.steps == steps
    for machine in ("three", ""):
        here(machine)
        assert measured.newest(RACE) is None


@pytest.mark.parametrize(("teachers", "newest"), [((), 1), (("ada",), 2)])
def test_a_student_replaces_nobodys_measurement(here, monkeypatch, teachers, newest):
    here("class")
    monkeypatch.setattr(server.room(), "_members", {"ada": MEMBER})
    until = time.time() + 60
    monkeypatch.setattr(server.room(), "_teachers", dict.fromkeys(teachers, until))
    for steps, owner in ((1, ""), (2, "ada")):
        value, ago = replace(samples.RACE, steps=steps), 10 - steps
        measured_job = job(value, ago, machine="class", owner=owner)
        keep(server.store().measurements, measured_job)
    server.store().writer.flush()
    assert measured.newest(RACE).value.steps == newest


def test_a_page_opens_empty_where_nothing_can_be_read(here, monkeypatch):
    here("here")
    away = Mock(side_effect=StoreError("gone"))
    monkeypatch.setattr(type(server.store().measurements), "newest_ids", away)
    assert measured.newest(RACE) is None


def either_is_faster(race: Race) -> Race:
    """The race as a busy machine measures it: once, the first candidate is ahead."""
    warm_ups, (first, *others) = race.trials[:2], race.trials[2:]
    ahead = replace(first, train_seconds=first.train_seconds / 10)
    return replace(race, trials=(*warm_ups, ahead, *others))


@pytest.mark.parametrize(
    ("arguments", "torch", "is_displaced"),
    [((), "2.15.0", False), (("other",), "2.15.0", True), ((), "2.16.0", True)],
)
def test_a_measurement_that_tells_less_displaces_none_of_the_same(
    here, monkeypatch, arguments, torch, is_displaced
):
    machine = f"{arguments} {torch}"
    here(machine)
    told = []
    monkeypatch.setattr(measured.st, "caption", told.append)
    clear, places = samples.RACE, samples.RACE.environments
    unclear = either_is_faster(clear)
    places = tuple(replace(place, torch=torch) for place in places)
    unclear = replace(unclear, environments=places)
    first = job(clear, 20, machine=machine)
    second = job(unclear, 10, machine=machine, arguments=arguments)
    for measured_job in (first, second):
        keep(server.store().measurements, measured_job)
    server.store().writer.flush()
    assert RaceLab.open_guesses(second) > RaceLab.open_guesses(first)
    assert measured.newest(RACE).value == (unclear if is_displaced else clear)
    measured.tell_clearer(second)
    assert len(told) == (not is_displaced)
    told.clear()
    keep(server.store().measurements, newest := job(clear, machine=machine))
    server.store().writer.flush()
    assert measured.newest(RACE).stopped == newest.stopped
    measured.tell_clearer(newest)
    assert not told


@pytest.mark.parametrize(("owner", "steps"), [("", 1), ("bob", 2)])
def test_of_equal_ones_a_persons_measurement_is_shown(here, owner, steps):
    here(f"of {owner}")
    for number, by in ((1, "ada"), (2, owner)):
        value, ago = replace(samples.RACE, steps=number), 20 - number
        measured_job = job(value, ago, machine=f"of {owner}", owner=by)
        keep(server.store().measurements, measured_job)
    server.store().writer.flush()
    assert measured.newest(RACE).value.steps == steps


@pytest.mark.parametrize(
    ("value", "where"),
    [
        (samples.RACE, "on A processor and Testing card, 2 threads, torch 2.15.0"),
        (samples.TRANSFERS, "on Testing card, 2 threads, torch 2.15.0"),
        (samples.MULTIPLIED, "on A processor, 2 cores, torch 2.15.0"),
        ((samples.PROFILE,), "on Testing card, 2 threads, torch 2.15.0"),
    ],
)
def test_when_and_where_and_by_whom_it_was(monkeypatch, value, where):
    monkeypatch.setattr(measured, "visitor", lambda: "me")
    three_hours = measured.sentence(job(value, 3 * 3600))
    assert "3 hours" in three_hours
    assert where in three_hours
    by = [measured.sentence(job(value, owner=who)) for who in ("ada", "me", "")]
    assert len(set(by)) == 3
    kept = measured.sentence(job(value), on_paper=True)
    assert str(date.today().year) in kept
    assert "ago" not in kept


def test_threads_that_differ_are_what_was_compared(monkeypatch):
    monkeypatch.setattr(measured, "visitor", lambda: "me")
    single = replace(samples.PROCESSOR, threads=1)
    race = replace(samples.RACE, environments=(single, samples.PROCESSOR))
    text = measured.sentence(job(race, owner="me"))
    assert " A processor, torch 2.15.0, " in text
