"""core.jobs.idle: what a server does by itself, and how it gives way to people."""

import threading
from collections.abc import Callable

import pytest

from core.jobs import idle
from core.jobs.engine import Engine
from core.jobs.job import Job
from tests.jobs.follow import RUN, SHORT, finish, wait

COUNT = "tests.jobs.follow:count"


@pytest.fixture
def work_off(engine):
    """Work off these jobs in a thread that the test waits for."""
    threads = []

    def begin(*jobs: tuple, idle_seconds: float = 0.3) -> threading.Thread:
        work = (engine, jobs, idle_seconds)
        threads.append(threading.Thread(target=idle.work_off, args=work, daemon=True))
        threads[-1].start()
        return threads[-1]

    yield begin
    for each in threads:
        each.join(60)
        assert not each.is_alive()


def new(engine: Engine) -> Callable[[], list[Job]]:
    """A function that tells which jobs of COUNT have come since now, in order."""
    known = {job.id for job in engine.jobs(COUNT)}
    return lambda: [job for job in engine.jobs(COUNT) if job.id not in known]


def test_a_person_is_served_before_what_is_done_in_idle_time(engine, work_off):
    """It is cancelled halfway when they come, and done once they are gone."""
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


def test_nothing_begins_while_somebody_has_a_job(engine, work_off):
    """Neither while it runs nor right after it; then each is done once."""
    mine = engine.submit(COUNT, 30, owner="ada")
    done = new(engine)
    thread = work_off(
        (COUNT, (1,)), ("core.errors:no_such_function", ()), (COUNT, (2,))
    )
    thread.join(60)
    assert [(job.status, job.value) for job in done()] == [
        ("finished", 1),
        ("finished", 2),
    ]
    assert done()[0].submitted > engine.job(mine).stopped + 0.2
    assert {job.owner for job in done()} == {""}
