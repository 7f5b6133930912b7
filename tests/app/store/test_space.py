import math
import random
import time
from dataclasses import replace

import pytest
from sqlalchemy import select, update

from core.store import space
from core.store.space import make_room
from core.store.tables import Class, Member, Visitor
from tests.app.store.made_up import RESULT, begin, queue

SIZE = 100_000  # bytes of a run


def run(store, run_id, visitor="me"):
    queue(store, run_id, visitor)
    store.runs.begin(run_id)
    checkpoint = random.Random(run_id).randbytes(SIZE)  # nothing compresses it
    store.runs.end(run_id, "finished", replace(RESULT, checkpoint=checkpoint))
    store.writer.flush()


def seen(store, visitor, days):
    at = time.time() - days * 86_400
    change = update(Visitor).where(Visitor.id == visitor).values(seen=at)
    store.writer.write(lambda session: session.execute(change))


def ids(store):
    return sorted(run.id for run in store.runs.find(hidden=True))


@pytest.fixture
def few(monkeypatch):
    """Small numbers, so that each row counts."""
    monkeypatch.setattr(space, "OWN", 3)
    monkeypatch.setattr(space, "AT_ONCE", 1)
    monkeypatch.setattr(space, "SHARE", 1.0)


def without(store, rows):
    """A limit that the database reaches once so many runs are gone."""
    return store.database.used_bytes() - int((rows - 0.5) * SIZE)


@pytest.mark.usefixtures("few")
def test_nothing_goes_while_there_is_room(store):
    for number in range(5):
        run(store, str(number))
    assert make_room(store, store.database.used_bytes()) == 0
    assert len(ids(store)) == 5


@pytest.mark.usefixtures("few")
def test_who_has_the_most_runs_loses_the_oldest_first(store):
    """Even if others haven't come for long. A run with a name counts as a new one."""
    for number in range(4):
        run(store, f"few {number}", "few")
    for number in range(7):
        run(store, f"many {number}", "many")
    seen(store, "few", 100)
    store.runs.rename("many 0", "many", "the best")
    assert make_room(store, without(store, 3)) == 3
    left = ids(store)
    assert [name for name in left if name[:4] == "many"] == [
        *("many 0", "many 4", "many 5", "many 6")
    ]
    assert len(left) == 8
    assert make_room(store, without(store, 2)) == 2
    assert ids(store) == ["few 1", "few 2", "few 3", "many 0", "many 5", "many 6"]


@pytest.mark.usefixtures("few")
def test_then_those_who_have_not_come_for_longest_lose_theirs(store):
    for visitor in ("today", "old", "older", "student"):
        for number in range(2):
            run(store, f"{visitor} {number}", visitor)
        store.answers.keep(visitor, "race", 1)
    for days, visitor in enumerate(("today", "old", "older", "student")):
        seen(store, visitor, days)
    now = time.time()

    def in_class(session):
        classroom = Class(
            id="c", code="c", name="", size=9, rules="", created=now, is_open=True
        )
        session.add(classroom)
        session.flush()
        session.add(
            Member(class_id="c", visitor="student", name="", joined=now, runs=0)
        )

    store.writer.write(in_class)
    run(store, "student 2", "student")  # of the class, whose rules don't matter here
    begin(store, "going on")
    make_room(store, without(store, 4))
    assert ids(store) == [
        *("going on", "old 0", "old 1", "student 2", "today 0", "today 1")
    ]
    assert store.answers.of("older") == {"race": 1}
    make_room(store, 0)
    assert ids(store) == ["going on", "student 2"]
    visitors = store.database.read(lambda s: set(s.scalars(select(Visitor.id))))
    assert visitors == {"me", "student"}
    assert store.answers.of("student") == {"race": 1}


def test_room_that_is_free_again_does_not_count(store):
    before = store.database.used_bytes()
    run(store, "a")
    assert store.database.used_bytes() > before + SIZE * 0.9
    store.runs.delete(["a"], "me")
    assert store.database.used_bytes() < before + SIZE * 0.5
    room = store.database.room_bytes()
    assert room > 0
    assert math.isinf(room) is not store.database.is_file
