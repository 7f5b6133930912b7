"""core.classroom.room: the class that is open, and what it lets in."""

from collections.abc import Callable, Iterator
from itertools import count

import pytest

from core.classroom.room import Room, Teacher
from core.classroom.rules import Rules
from core.config import RunConfig
from core.errors import ExplainedError
from core.jobs.job import Job
from core.store.classes import Class
from core.store.store import Store

TEACHER = Teacher("ms bird's browser", "Ms Bird")
RUN = "core.training:run"
IDS = count()


@pytest.fixture
def store() -> Iterator[Store]:
    store = Store.passing("")
    yield store
    store.close()


@pytest.fixture
def room(store: Store) -> Room:
    return Room(store.classes)


@pytest.fixture
def opened(room: Room) -> Callable[..., Class]:
    """Opens a class of that size, with those rules."""

    def open_one(size: int = 30, **rules: object) -> Class:
        made = room.create(TEACHER, "Physics 9B", size, Rules(**rules))
        room.start(TEACHER, made.id)
        return made

    return open_one


def begin(room: Room, owner: str, expected: float | None = None, **settings: object):
    """A training run of somebody comes to the queue."""
    config = RunConfig(**{"task": "sprites", **settings})
    job = Job(str(next(IDS)), RUN, (config,), "train", owner)
    room.admit(job, expected)


def refused(act: Callable, *arguments: object, **more: object) -> str:
    """Why it can't be."""
    with pytest.raises(ExplainedError) as error:
        act(*arguments, **more)
    return str(error.value)


def test_without_a_class_nothing_is_asked(room):
    """Nobody is in one, everybody is alone, and all is let in."""
    begin(room, "ada", epochs=50)
    assert (room.open, room.member("ada"), room.members()) == (None, None, [])
    assert (room.person("ada"), room.seconds("ada"), room.paused) == (
        "ada",
        None,
        False,
    )


def test_to_join_is_to_have_the_code(room, opened):
    """However it was typed; a second tab is the same person."""
    code = opened().code
    member = room.join(code.upper().replace("-", " "), "ada")
    assert room.join(code, "ada") == room.member("ada") == member
    assert room.rename("ada", "Ada  B").name == room.member("ada").name == "Ada B"
    room.join(code, "bob")
    assert "has that name already" in refused(room.rename, "bob", "ada b")
    assert "not in a class" in refused(room.rename, "eve", "Eve")


def test_who_can_not_join_is_told_why(room, opened):
    """A wrong code, a class that is closed, one that is full."""
    assert "No class has that code" in refused(room.join, "lusab-babad", "ada")
    made = opened(size=1)
    assert "No class has that code" in refused(room.join, "", "ada")
    room.join(made.code, "ada")
    assert "is full" in refused(room.join, made.code, "bob")
    room.close(TEACHER, made.id)
    assert "is closed" in refused(room.join, made.code, "bob")
    assert room.member("ada") is None
    room.start(TEACHER, made.id)
    assert room.member("ada") is not None


def test_a_fresh_cookie_is_no_way_around_a_limit(room, opened):
    """Those who have not joined share one allowance; seats are not given back."""
    code = opened(size=2, runs=2).code
    begin(room, "cookie 1")
    begin(room, "cookie 2")
    assert "have begun 2 runs" in refused(begin, room, "cookie 3")
    assert len({room.person(f"cookie {number}") for number in range(9)}) == 1
    for _ in range(2):
        room.join(code, "ada")
        begin(room, "ada")
        begin(room, "ada")
        assert "You have begun 2 runs" in refused(begin, room, "ada")
        room.forget("ada")  # their data is deleted: a new visitor takes a new seat
    assert "is full" in refused(room.join, code, "ada")


def test_what_is_counted_survives_a_restart_and_what_is_deleted(store, room, opened):
    """The rules, the pause, who is in, and how many runs each has begun."""
    code = opened(runs=1).code
    room.join(code, "ada")
    begin(room, "ada")
    begin(room, "a cookie")
    room.pause(TEACHER)
    store.writer.flush()
    again = Room(store.classes)
    assert again.open == room.open
    assert again.members() == room.members()
    assert again.paused
    for owner in ("ada", "another cookie"):
        assert "may begin more" in refused(begin, again, owner)


def test_what_is_refused_does_not_count(room, opened):
    """Nor do other jobs than runs."""
    room.join(opened(runs=1, epochs=5, seconds=60).code, "ada")
    assert "up to 5 epochs" in refused(begin, room, "ada", epochs=6)
    assert "may take a minute" in refused(begin, room, "ada", 61.0)
    room.admit(Job("a lab", "core.speed.loader:measure", ((0, 1),), "train", "ada"), 3)
    begin(room, "ada", 59.0)
    assert room.seconds("ada") == 60
    assert room.seconds("") is None, "what the server does by itself is no run"


def test_no_rule_holds_for_a_teacher(room, opened):
    """From signing in until signing out."""
    opened(runs=1, epochs=1, seconds=5)
    room.welcome(TEACHER)
    for _ in range(3):
        begin(room, TEACHER.visitor, 99.0, epochs=9)
    assert room.person(TEACHER.visitor) == TEACHER.visitor
    room.dismiss(TEACHER)
    assert "up to 1 epoch," in refused(begin, room, TEACHER.visitor, epochs=9)


def test_a_class_that_closes_is_not_paused(room, opened):
    """Nobody waits for a teacher who has gone home."""
    made = opened()
    room.pause(TEACHER)
    assert room.paused
    room.pause(TEACHER, False)
    assert not room.paused
    room.pause(TEACHER)
    room.close(TEACHER, made.id)
    assert not room.paused
    assert "No class is open" in refused(room.pause, TEACHER)
    room.start(TEACHER, made.id)
    assert not room.paused


def test_every_act_is_written_down(store, room, opened):
    """Who did what, the newest first."""
    made = opened()
    room.pause(TEACHER)
    room.change(TEACHER, made.id, size=40)
    room.close(TEACHER, made.id)
    store.writer.flush()
    assert [act.what for act in store.classes.acts(made.id)] == [
        "closed the class",
        "changed size to 40",
        "paused the queue",
        "opened the class",
        "made the class Physics 9B, for 30",
    ]
    assert {act.who for act in store.classes.acts()} == {"Ms Bird"}


def test_a_class_is_deleted_with_people_in_it(store, room, opened):
    """Its runs are ended and let go of; who was in it is in none."""
    made = opened()
    room.join(made.code, "ada")
    store.runs.queue("a run", "ada", RUN, (RunConfig(),))
    forgotten = []
    room.delete(TEACHER, made.id, lambda *theirs: forgotten.append(theirs))
    assert forgotten == [("ada", ["a run"])] * 2
    assert room.open is None
    assert room.member("ada") is None
    assert store.runs.find("ada") == []
    assert "no longer there" in refused(room.start, TEACHER, made.id)


def test_a_class_is_deleted_on_its_date(store, room, opened):
    """By whoever looks then; without a date it stays."""
    past, never = opened(), opened()
    room.change(TEACHER, past.id, ends=1.0)
    room.delete_ended(lambda *_: None)
    assert [each.id for each in store.classes.all()] == [never.id]
