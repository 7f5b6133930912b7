"""A person who deletes their data: the engine forgets their jobs, whatever they do."""

from tests.jobs.follow import LONG, RUN, SHORT, finish, running, wait


def test_who_is_forgotten_has_no_jobs(engine, kept):
    """What runs ends within a batch, what waits never begins; others' jobs go on."""
    done = engine.submit(RUN, SHORT, owner="me")
    stored = finish(engine, done).id
    runs, waits = (engine.submit(RUN, LONG, owner="me") for _ in range(2))
    theirs = engine.submit(RUN, SHORT, owner="you")
    running(engine, runs)
    engine.forget("me")
    kept.visitors.delete("me")
    assert [engine.job(each) for each in (done, runs, waits)] == [None] * 3
    assert engine.jobs(RUN, "me") == []
    assert engine._jobs._events.keys() <= {theirs}
    assert finish(engine, theirs).status == "finished"
    wait(lambda: not engine._queue.of("me"))
    assert engine._queue.of("you") == 0
    assert stored not in engine._history._late


def test_a_forgotten_job_that_was_lost_keeps_no_place(engine):
    """A worker that is lost with one is free for the next."""
    job_id = engine.submit(RUN, LONG, owner="me")
    running(engine, job_id)
    engine._jobs.remove(job_id)
    engine._when_lost(job_id, "its worker is gone")
    assert engine._queue.of("me") == 0
    engine._connection.cancel(job_id)
    assert finish(engine, engine.submit(RUN, SHORT)).status == "finished"
