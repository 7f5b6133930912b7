import math
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from unittest.mock import Mock

import pytest
from sqlalchemy import select, update

from core.store import database, space, writer
from core.store.codec import StoreError
from core.store.space import make_room
from core.store.tables import Class, Member, Visitor
from core.store.visitors import ensure_visitor
from tests.app.store.failures import read_only
from tests.app.store.made_up import RESULT, begin, queue
from tests.process import HOUR

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


def of(rows):
    """How many bytes to make free, so that this many runs go."""
    return (rows - 0.5) * SIZE


def in_class(store, visitor):
    now = time.time()

    def work(session):
        ensure_visitor(session, visitor)
        classroom = Class(
            id="c", code="c", name="", size=9, rules="", created=now, is_open=True
        )
        session.add(classroom)
        session.flush()
        session.add(Member(class_id="c", visitor=visitor, name="", joined=now, runs=0))

    store.writer.write(work)


@pytest.mark.usefixtures("few")
def test_nothing_goes_without_need(store):
    for number in range(5):
        run(store, str(number))
    assert make_room(store, 0).rows == 0
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
    assert make_room(store, of(3)).rows == 3
    left = ids(store)
    assert [name for name in left if name[:4] == "many"] == [
        *("many 0", "many 4", "many 5", "many 6")
    ]
    assert len(left) == 8
    assert make_room(store, of(2)).rows == 2
    assert ids(store) == ["few 1", "few 2", "few 3", "many 0", "many 5", "many 6"]


@pytest.mark.usefixtures("few")
def test_then_those_who_have_not_come_for_longest_lose_theirs(store):
    for visitor in ("today", "old", "older", "student"):
        for number in range(2):
            run(store, f"{visitor} {number}", visitor)
        store.answers.keep(visitor, "race", 1)
    for days, visitor in enumerate(("today", "old", "older", "student")):
        seen(store, visitor, days)
    in_class(store, "student")
    run(store, "student 2", "student")  # of the class, whose rules don't matter here
    begin(store, "going on")
    make_room(store, of(4))
    assert ids(store) == [
        *("going on", "old 0", "old 1", "student 2", "today 0", "today 1")
    ]
    assert store.answers.of("older") == {"race": 1}
    make_room(store, math.inf)
    assert ids(store) == ["going on", "student 2"]
    visitors = store.database.read(lambda s: set(s.scalars(select(Visitor.id))))
    assert visitors == {"me", "student"}
    assert store.answers.of("student") == {"race": 1}


@pytest.mark.parametrize("of_class", [1, 5])
def test_who_came_today_makes_no_room_for_classes(store, of_class):
    in_class(store, "student")
    for number in range(of_class):
        run(store, f"student {number}", "student")
    for visitor in ("here", "away"):
        run(store, f"{visitor} 0", visitor)
        store.answers.keep(visitor, "race", 1)
    seen(store, "away", 2)
    is_most = of_class == 5
    assert space.classes_hold_most(store) is is_most
    make_room(store, math.inf)
    assert ids(store) == [
        *(["here 0"] if is_most else []),
        *(f"student {number}" for number in range(of_class)),
    ]
    assert store.answers.of("here") == ({"race": 1} if is_most else {})
    assert store.answers.of("away") == {}


@pytest.mark.usefixtures("few")
def test_of_a_class_only_what_is_beside_the_newest_of_a_person_goes(store):
    in_class(store, "student")
    for number in range(5):
        run(store, f"student {number}", "student")
    make_room(store, math.inf)
    assert ids(store) == ["student 2", "student 3", "student 4"]


def test_deleting_says_how_much_it_has_freed(store):
    run(store, "a")
    run(store, "b", "you")
    store.answers.keep("you", "race", "x" * 5_000)
    before = store.database.used_bytes()
    deleted = make_room(store, math.inf)
    assert deleted.rows == 4  # and two visitors
    assert before - store.database.used_bytes() == pytest.approx(deleted.bytes, rel=0.3)


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_what_cannot_be_deleted_now_is_not_deleted_later(store, monkeypatch):
    run(store, "a")
    free = threading.Event()
    with monkeypatch.context() as patch:
        patch.setattr(writer, "PATIENCE_SECONDS", 0.1)
        waiting = store.writer.put(lambda _: free.wait(60))  # it hangs
        with pytest.raises(StoreError):
            make_room(store, math.inf)
    free.set()
    assert store.writer.flush(60)
    assert waiting.ended
    with read_only(store, None):
        for _ in range(2):
            with pytest.raises(StoreError):
                make_room(store, math.inf)
    assert store.writer.flush(60)
    assert ids(store) == ["a"]


def test_what_was_deleted_before_a_failure_counts(store, monkeypatch):
    run(store, "a")
    run(store, "b")
    monkeypatch.setattr(space, "AT_ONCE", 1)
    now = Mock(side_effect=[space.Deleted(1, SIZE), StoreError("Away.")])
    monkeypatch.setattr(store.writer, "now", now)
    assert make_room(store, math.inf) == (1, SIZE)


def test_who_reads_meanwhile_does_not_wait(store, monkeypatch):
    """A search for old rows may take longer than a database that hangs is given."""
    run(store, "a")
    monkeypatch.setattr(database, "READ_SECONDS", 0.1)
    free, began = threading.Event(), threading.Event()

    def search(_):
        began.set()
        return free.wait(60)

    with ThreadPoolExecutor(1) as pool:
        long = pool.submit(store.database.read, search, is_long=True)
        assert began.wait(60)
        time.sleep(0.5)
        monkeypatch.setattr(database, "READ_SECONDS", HOUR)
        assert ids(store) == ["a"]
        assert store.problem == ""
        free.set()
        assert long.result(60)


def test_room_that_is_free_again_does_not_count(store):
    before = store.database.used_bytes()
    run(store, "a")
    assert store.database.used_bytes() > before + SIZE * 0.9
    store.runs.delete(["a"], "me")
    assert store.database.used_bytes() < before + SIZE * 0.5
    assert store.database.used_bytes(enough=math.inf) >= before
    room = store.database.room()
    assert room.total >= room.free > 0
    assert math.isinf(room.total) is not store.database.is_file
