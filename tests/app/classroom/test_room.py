import time
from collections.abc import Callable, Iterator
from itertools import count

import pytest

from core.classroom.room import Room, Teacher, words
from core.classroom.rules import Rules
from core.config import RunConfig
from core.jobs.estimates import spoken
from core.jobs.job import Job
from core.store.store import Store
from core.store.tables import Class, Member
from tests.app.store.made_up import finished, queue
from tests.figures import figures
from to_device.errors import ExplainedError

TEACHER = Teacher("ms bird's browser", "Ms Bird")
RUN = "core.training:run"
IDS = count()


@pytest.fixture
def store() -> Iterator[Store]:
    store = Store.temporary("")
    yield store
    store.close()


@pytest.fixture
def room(store: Store) -> Room:
    return Room(store.classes)


@pytest.fixture
def open_class(room: Room) -> Callable[..., Class]:
    """Opens a class of a size, with rules."""

    def open_one(size: int = 30, **rules: object) -> Class:
        classroom = room.create(TEACHER, "Physics 9B", size, Rules(**rules))
        room.start(TEACHER, classroom.id)
        return classroom

    return open_one


def begin(room: Room, owner: str, expected: float | None = None, **settings: object):
    """Submit a training run."""
    config = RunConfig(**{"task": "sprites", **settings})
    room.admit(Job(str(next(IDS)), RUN, (config,), "train", owner), expected)


def refused(act: Callable, *arguments: object, **more: object) -> str:
    with pytest.raises(ExplainedError) as error:
        act(*arguments, **more)
    return str(error.value)


def test_without_a_class_every_job_is_admitted(room):
    begin(room, "ada", epochs=50)
    assert (room.open, room.member("ada"), room.members()) == (None, None, [])
    assert (room.person("ada"), room.seconds("ada")) == ("ada", None)
    assert not room.paused
    assert not room.may_see("ada")


def test_a_code_joins_however_it_is_typed_and_a_second_tab_is_the_same_member(
    room, open_class
):
    code = open_class().code
    member = room.join(code.upper().replace("-", " "), "ada")
    assert room.join(code, "ada") == room.member("ada") == member
    assert room.may_see("ada")
    assert room.rename("ada", "Ada  B").name == room.member("ada").name == "Ada B"
    room.join(code, "bob")
    assert refused(room.rename, "bob", "ada b") == words("names.taken")
    assert refused(room.rename, "eve", "Eve") == words("room.not_in")


def test_a_fresh_cookie_is_no_way_around_a_limit(room, open_class):
    """Visitors who have not joined share one allowance; seats are not given back."""
    code = open_class(size=2, runs=2).code
    begin(room, "cookie 1")
    begin(room, "cookie 2")
    assert figures(refused(begin, room, "cookie 3")) == ["2"]
    assert len({room.person(f"cookie {number}") for number in range(9)}) == 1
    for _ in range(2):
        room.join(code, "ada")
        begin(room, "ada")
        begin(room, "ada")
        assert figures(refused(begin, room, "ada")) == ["2"]
        room.forget("ada")  # their data is deleted: a new visitor takes a new seat
    assert refused(room.join, code, "ada") == words("room.full")


def test_counts_rules_members_and_the_pause_survive_a_restart(store, room, open_class):
    code = open_class(runs=1).code
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
        assert figures(refused(begin, again, owner)) == ["1"]


def test_what_the_wall_shows_and_has_shown_survives_a_restart(store, room, open_class):
    classroom = open_class()
    room.join(classroom.code, "ada")
    assert not room.has_results
    finished(store, "a run", "ada")
    room.reveal(TEACHER, "one", "One", True, (("Twice",), "2.1×"))
    room.reveal(TEACHER, "two", "Two", False)
    room.reveal(TEACHER, "one", "One", True, (("Slower",), "0.9×"))  # measured later
    room.reveal(TEACHER, "two", "Two", False)
    store.writer.flush()
    again = Room(store.classes)
    answers, figure = again.shown(classroom.id)["one"]
    assert (*answers, figure) == ("Twice", "2.1×")
    assert (again.revealed, again.with_result, again.told) == ("two", False, {"one"})
    assert again.has_results
    again.close(TEACHER, classroom.id)
    assert again.revealed == ""
    assert refused(again.reveal, TEACHER, "one", "One", True)
    again.start(TEACHER, again.create(TEACHER, "Chemistry", 30, Rules()).id)
    assert (again.told, again.has_results) == (frozenset(), False)


ACTS: dict[str, Callable[[Room], object]] = {
    "pause": lambda room: room.pause(TEACHER),
    "reveal": lambda room: room.reveal(TEACHER, "one", "One", False),
    "tell": lambda room: room.reveal(TEACHER, "one", "One", True),
    "close": lambda room: room.close(TEACHER, room.on_board.id),
    "start": lambda room: room.start(TEACHER, room.on_board.id),
    "rename": lambda room: room.rename_for(TEACHER, ADA, "Zoë"),
    "remove": lambda room: room.remove(TEACHER, ADA),
}
ADA = Member("", "ada", "", 0.0, 0)


@pytest.mark.parametrize("act", ACTS)
def test_an_act_that_comes_twice_is_done_and_logged_once(store, room, open_class, act):
    classroom = open_class()
    for who in ("ada", "bob"):
        room.join(classroom.code, who)
    store.writer.flush()
    member = room.member("ada")
    states = []
    for _ in range(2):
        ADA.class_id, ADA.name = classroom.id, member.name  # as the page was drawn
        ACTS[act](room)
        store.writer.flush()
        acts = [(row.who, row.what) for row in store.classes.acts()]
        states.append((store.classes.all(), store.classes.members(classroom.id), acts))
    assert states[0] == states[1]


def test_only_admitted_runs_count(room, open_class):
    room.join(open_class(runs=1, epochs=5, seconds=60).code, "ada")
    assert figures(refused(begin, room, "ada", epochs=6)) == ["5", "6"]
    assert spoken(60) in refused(begin, room, "ada", 61.0)
    lab = "core.lessons.speed.loader:measure"
    room.admit(Job("a lab", lab, ((0, 1),), "train", "ada"), 3)
    assert [*room.refused()] == ["ada"], "a teacher is told whose run was too long"
    begin(room, "ada", 59.0)
    assert not room.refused()
    assert room.seconds("ada") == 60
    assert room.seconds("") is None, "the server's own work has no limit"


def test_no_rule_holds_for_a_teacher_until_they_sign_out(room, open_class):
    open_class(runs=1, epochs=1, seconds=5)
    room.welcome(TEACHER, time.time() + 60)
    for _ in range(3):
        begin(room, TEACHER.visitor, 99.0, epochs=9)
    assert room.person(TEACHER.visitor) == TEACHER.visitor
    assert room.may_see(TEACHER.visitor)
    room.dismiss(TEACHER)
    assert figures(refused(begin, room, TEACHER.visitor, epochs=9)) == ["1", "9"]
    room.welcome(TEACHER, time.time() - 1)  # a sign-in that has run out
    assert not room.is_teacher(TEACHER.visitor)
    assert not room.may_see(TEACHER.visitor)
    assert figures(refused(begin, room, TEACHER.visitor, epochs=9)) == ["1", "9"]


def test_closing_a_class_resumes_the_queue(room, open_class):
    classroom = open_class()
    room.pause(TEACHER)
    room.pause(TEACHER, False)
    assert not room.paused
    room.pause(TEACHER)
    assert room.paused
    room.close(TEACHER, classroom.id)
    assert not room.paused
    assert refused(room.pause, TEACHER)
    room.start(TEACHER, classroom.id)
    assert not room.paused


def test_deleting_a_class_ends_its_runs_and_leaves_nobody_in_it(
    store, room, open_class
):
    classroom = open_class()
    room.join(classroom.code, "ada")
    queue(store, "a run", "ada")
    forgotten = []
    room.delete(TEACHER, classroom.id, lambda *runs: forgotten.append(runs))
    assert forgotten == [("ada", ["a run"])] * 2
    assert (room.open, room.member("ada")) == (None, None)
    assert store.runs.find("ada") == []
    assert refused(room.start, TEACHER, classroom.id)


def test_a_class_is_deleted_after_its_date(store, room, open_class, monkeypatch):
    past, never, later = open_class(), open_class(), open_class()
    room.change(TEACHER, past.id, "set its end", ends=1.0)
    room.change(TEACHER, later.id, "set its end", ends=time.time() + 3600)
    with monkeypatch.context() as patch:  # the clock is wrong for a while
        patch.setattr(time, "time", lambda: 1e12)
        found = room.delete_expired(lambda *_: None)
    assert found == {past.id, later.id}
    assert len(store.classes.all()) == 3
    assert room.delete_expired(lambda *_: None, found) == set()
    assert {each.id for each in store.classes.all()} == {never.id, later.id}


def test_each_member_trains_with_a_seed_of_their_own_and_no_other(room, open_class):
    classroom = open_class(own_seeds=True)
    for who in ("ada", "bob"):
        room.join(classroom.code, who)
    seeds = {who: room.rules_for(who).settings["seed"] for who in ("ada", "bob")}
    assert seeds["ada"] != seeds["bob"]
    begin(room, "ada", seed=seeds["ada"])
    why = refused(begin, room, "ada", seed=seeds["bob"])
    assert {str(seeds["ada"]), str(seeds["bob"])} <= {*figures(why)}
    room.change(
        TEACHER, classroom.id, "fixed it", rules=Rules(own_seeds=True, epochs=3)
    )
    assert room.rules_for("ada").epochs == 3
    assert room.rules_for("ada").settings["seed"] == seeds["ada"]
    assert room.rules_for("a stranger").fixed == {}


def test_a_closed_class_stays_on_the_board_for_its_own_people(room, open_class):
    classroom = open_class()
    member = room.join(classroom.code, "ada")
    for _ in range(2):  # in two tabs
        room.close(TEACHER, classroom.id)
    assert room.open is None
    assert room.rules_for("ada") == Rules()
    assert room.board_for("ada").id == classroom.id
    assert not room.board_for("ada").is_open
    assert room.board_for("eve") is None
    assert room.members() == [member]
    room.change(TEACHER, classroom.id, "hid the names", rules=Rules(anonymous=True))
    assert room.on_board.rules.anonymous
    again = open_class()
    assert (room.on_board.id, room.members()) == (again.id, [])
    room.close(TEACHER, again.id)
    room.delete(TEACHER, again.id, lambda *_: None)
    assert room.on_board is None


def test_a_teacher_renames_and_removes_one_person_whose_seat_is_free(
    room, open_class, store
):
    classroom = open_class(size=2)
    ada, bob = (room.join(classroom.code, who) for who in ("ada", "bob"))
    assert refused(room.rename_for, TEACHER, ada, bob.name) == words("names.taken")
    room.rename_for(TEACHER, ada, "Zoë")
    assert room.member("ada").name == "Zoë"
    room.remove(TEACHER, bob)
    assert room.member("bob") is None
    assert not room.may_see("bob")
    assert [member.name for member in store.classes.members(classroom.id)] == ["Zoë"]
    room.join(classroom.code, "cy")
    assert "full" in refused(room.join, classroom.code, "di")
    store.writer.flush()
    acts = [act.what for act in store.classes.acts(classroom.id)]
    assert f"renamed {ada.name} to Zoë" in acts
    assert f"removed {bob.name}" in acts
