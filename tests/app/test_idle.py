import threading
from collections.abc import Callable
from dataclasses import replace
from unittest.mock import Mock

import pytest

from core import idle
from core.jobs.engine import Engine
from core.jobs.job import Job
from core.registry import PACE
from core.ui import last_measurement as measured
from tests.app import samples
from tests.app.jobs.follow import RUN, SHORT, finish, wait

COUNT, RACE = "tests.app.jobs.follow:count", "core.lessons.compare.race:race"


@pytest.fixture
def left_to_measure(engine, monkeypatch):
    wait(lambda: engine.machine() is not None)
    monkeypatch.delenv("MEASURE_WHEN_IDLE")
    monkeypatch.delenv("DASK_SCHEDULER_ADDRESS", raising=False)
    jobs: list[tuple] = []
    monkeypatch.setattr(idle, "work_off", jobs.extend)

    def addresses(results: dict[str, object]) -> set[str]:
        def newest(address: str) -> Job | None:
            value = results.get(address)
            return value and Job("id", address, (), "train", value=value)

        monkeypatch.setattr(measured, "newest", newest)
        monkeypatch.setattr(idle.runs, "idle_run", lambda *_: results.get(RUN))
        jobs.clear()
        idle.measure(engine.machine())
        return {address for address, _ in jobs}

    return addresses


def test_a_fresh_machine_measures_what_is_quick(engine, left_to_measure):
    labs = """
    compare.race:race compare.timing_pitfalls:measure compare.step_profile:measure
    device.parallel:measure model.transfers:measure speed.copies:measure
    speed.memory:measure speed.vectorize:measure
    """
    quick = {RUN, PACE, *(f"core.lessons.{address}" for address in labs.split())}
    assert left_to_measure({}) == quick
    here = replace(samples.CARD, torch=engine.machine().devices[0].torch)
    race = replace(samples.RACE, environments=(here, here))
    old = replace(samples.COPIES, environment=replace(samples.CARD, torch="2.6.0"))
    results = {RACE: race, RUN: samples.RACE, "core.lessons.speed.copies:measure": old}
    assert left_to_measure(results) == quick - {RACE, RUN}


def test_what_a_busy_machine_could_not_tell_is_measured_again(
    engine, left_to_measure, monkeypatch
):
    address = "core.lessons.device.parallel:measure"
    here = replace(samples.PROCESSOR, torch=engine.machine().devices[0].torch)
    steady = replace(samples.MULTIPLIED, environment=here)
    scattered = [
        replace(way, seconds=(way.seconds[0] / 9, way.seconds[0], way.seconds[0] * 9))
        for way in steady.found
    ]
    busy = replace(steady, found=tuple(scattered))
    assert address not in left_to_measure({address: steady})
    assert address in left_to_measure({address: busy})
    monkeypatch.setattr(idle, "room", lambda: Mock(open="Monday"))
    assert address not in left_to_measure({address: busy})  # the class is guessing
    assert address in left_to_measure({})


def test_what_a_visitor_measures_meanwhile_is_left_out(
    engine, left_to_measure, monkeypatch
):
    machine = engine.machine()
    here = replace(samples.CARD, torch=machine.devices[0].torch)
    results: dict[str, object] = {}
    addresses = []

    def work_off(jobs):
        for address, _ in jobs:
            addresses.append(address)
            results[RACE] = replace(samples.RACE, environments=(here, here))

    left_to_measure(results)
    monkeypatch.setattr(idle, "work_off", work_off)
    idle.measure(machine)
    assert RUN in addresses
    assert RACE not in addresses


@pytest.mark.parametrize(
    ("name", "value"),
    [("MEASURE_WHEN_IDLE", "No"), ("DASK_SCHEDULER_ADDRESS", "tcp://127.0.0.1:8786")],
)
def test_nothing_is_measured_unasked(monkeypatch, left_to_measure, name, value):
    monkeypatch.setenv(name, value)
    assert left_to_measure({}) == set()


@pytest.fixture
def work_off(monkeypatch):
    monkeypatch.setattr(idle, "QUIET_SECONDS", 0.3)
    threads = []

    def begin(*jobs: tuple) -> threading.Thread:
        work = threading.Thread(target=idle.work_off, args=(jobs,), daemon=True)
        threads.append(work)
        work.start()
        return work

    yield begin
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


def new(engine: Engine) -> Callable[[], list[Job]]:
    """A function that tells which jobs of COUNT have come since now, in order."""
    earlier = {job.id for job in engine.jobs(COUNT)}
    return lambda: [job for job in engine.jobs(COUNT) if job.id not in earlier]


@pytest.mark.alone
@pytest.mark.slow
def test_a_person_is_served_before_what_is_done_while_idle(engine, work_off):
    done = new(engine)
    work_off((COUNT, (200,)))  # five seconds
    wait(lambda: len(done()) == 1)
    (first,) = done()
    wait(lambda: engine.job(first.id).status == "running")
    run = finish(engine, engine.submit(RUN, SHORT, owner="ada"))
    assert run.status == "finished"
    given_way = engine.job(first.id)
    assert given_way.status == "cancelled"
    assert given_way.stopped <= run.started
    wait(lambda: len(done()) == 2)
    _, again = done()
    assert again.submitted > run.stopped + 0.2
    assert finish(engine, again.id).status == "finished"


@pytest.mark.alone
@pytest.mark.slow
@pytest.mark.parametrize(
    ("opens", "attempts"), [(idle.ATTEMPTS, idle.ATTEMPTS), (1, 1), (0, 0)]
)
def test_a_measurement_is_repeated_until_a_class_opens(
    engine, work_off, monkeypatch, opens, attempts
):
    """The machine is busy all the time; the class opens after `opens` measurements."""
    monkeypatch.setattr(idle, "was_busy", lambda _: True)
    monkeypatch.setattr(measured, "newest", lambda _: samples)
    done = new(engine)

    def ended():
        return sum(job.status == "finished" for job in done())

    opened = property(lambda _: samples if ended() >= opens else None)
    monkeypatch.setattr(type(idle.room()), "open", opened)
    work_off((COUNT, (1,))).join(60)
    assert [job.status for job in done()] == ["finished"] * attempts


@pytest.mark.alone
@pytest.mark.slow
def test_nothing_begins_while_somebody_has_a_job(engine, work_off):
    mine = engine.submit(COUNT, 30, owner="ada")
    done = new(engine)
    wrong = "core.errors:no_such_function", ()
    work_off((COUNT, (1,)), wrong, (COUNT, (2,))).join(60)
    ended = [(job.status, job.value) for job in done()]
    assert ended == [("finished", 1), ("finished", 2)]
    assert done()[0].submitted > engine.job(mine).stopped + 0.2
    assert {job.owner for job in done()} == {""}
