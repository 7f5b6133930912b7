import json
import math

from core.classroom.rules import Rules
from core.store.export import everything
from core.store.store import Store
from core.store.tables import Class, Member
from tests.app.store.made_up import queue

RULES = Rules(epochs=5, fixed={"model": "ann"})


def join(
    store: Store, joined: Class, visitor: str, count: int = 1, since: float = math.inf
) -> Member:
    member = Member(
        class_id=joined.id, visitor=visitor, name=f"M {visitor}", joined=1.0, runs=0
    )
    store.writer.wait(store.classes.join(member, count, since))
    return member


def test_one_class_is_open_at_a_time(store: Store):
    first, second = (store.classes.create(name, 30, RULES) for name in "ab")
    store.classes.change(first.id, is_open=True)
    store.classes.change(second.id, is_open=True)
    assert [row.name for row in store.classes.all() if row.is_open] == ["b"]


def test_a_run_is_of_the_open_class_that_its_visitor_is_in(store: Store):
    closed, opened = (store.classes.create(name, 30, RULES) for name in "ab")
    store.classes.change(opened.id, is_open=True)
    join(store, opened, "ada")
    join(store, closed, "bob")
    for visitor in ("ada", "bob", "eve"):
        queue(store, f"of {visitor}", visitor)
    assert [run.id for run in store.classes.runs(opened.id)] == ["of ada"]
    assert store.classes.runs(closed.id) == []


def test_a_run_that_waits_when_its_visitor_joins_becomes_the_classs(store: Store):
    physics = store.classes.create("Physics", 30, RULES)
    queue(store, "before the class", "ada", submitted=1.0)
    store.classes.change(physics.id, is_open=True)
    for run_id, visitor in (("has ended", "ada"), ("waits", "ada"), ("of bob", "bob")):
        queue(store, run_id, visitor, submitted=2.0)
    store.writer.wait(store.runs.end("has ended", "failed"))
    join(store, physics, "ada", since=2.0)
    assert [run.id for run in store.classes.runs(physics.id)] == ["waits"]


def test_a_class_is_deleted_with_its_members_runs_and_log(store: Store):
    physics = store.classes.create("Physics", 30, RULES)
    queue(store, "before", "ada")
    store.classes.change(physics.id, is_open=True)
    join(store, physics, "ada")
    queue(store, "in it", "ada")
    store.classes.write_down("Ms Bird", "opened the class", physics.id)
    store.classes.write_down("Ms Bird", "signed in")
    store.classes.delete(physics.id)
    assert store.classes.all() == store.classes.members(physics.id) == []
    assert [run.id for run in store.runs.find("ada")] == ["before"]
    assert [(act.who, act.what) for act in store.classes.acts()] == [
        ("Ms Bird", "signed in")
    ]


def test_a_membership_is_exported_and_deleted_with_the_visitor(store: Store):
    physics = store.classes.create("Physics", 30, RULES)
    join(store, physics, "ada")
    (exported,) = json.loads(everything(store, "ada"))["classes"]
    assert (exported["class"], exported["name"]) == ("Physics", "M ada")
    store.visitors.delete("ada")
    assert store.classes.members(physics.id) == []
