"""core.jobs.idle: what a server does by itself, and how it gives way to people."""

import threading

import pytest

from core.jobs import idle
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


def test_a_person_is_served_before_what_is_done_in_idle_time(engine, work_off):
    """It is cancelled halfway when they come, and done once they are gone."""
    before = len(engine.jobs(COUNT))
    work_off((COUNT, (200,)))  # five seconds
    wait(lambda: len(engine.jobs(COUNT)) > before)
    first = engine.jobs(COUNT)[before]
    wait(lambda: engine.job(first.id).status == "running")
    run = finish(engine, engine.submit(RUN, SHORT, owner="ada"))
    assert run.status == "finished"
    given_way = engine.job(first.id)
    assert given_way.status == "cancelled"
    assert given_way.stopped <= run.started
    wait(lambda: len(engine.jobs(COUNT)) > before + 1)
    again = engine.jobs(COUNT)[before + 1]
    assert again.submitted > run.stopped + 0.2
    assert finish(engine, again.id).status == "finished"


def test_nothing_begins_while_somebody_has_a_job(engine, work_off):
    """Neither while it runs nor right after it; then each is done once."""
    mine = engine.submit(COUNT, 30, owner="ada")
    before = len(engine.jobs(COUNT))
    thread = work_off(
        (COUNT, (1,)), ("core.errors:no_such_function", ()), (COUNT, (2,))
    )
    thread.join(60)
    done = engine.jobs(COUNT)[before:]
    assert [(job.status, job.value) for job in done] == [
        ("finished", 1),
        ("finished", 2),
    ]
    assert done[0].submitted > engine.job(mine).stopped + 0.2
    assert {job.owner for job in done} == {""}
