"""core.store.classes: who is in a class, and what goes with it."""

import json

from core.classroom.rules import Rules
from core.config import RunConfig
from core.store.classes import Classes, Member
from core.store.export import everything
from core.store.store import Store

RULES = Rules(epochs=5, fixed={"model": "ann"})
RUN = "core.training:run"


def join(classes: Classes, class_id: str, visitor: str, joined: int = 1) -> Member:
    """Somebody is in a class, and that is committed."""
    member = Member(class_id, visitor, f"Name of {visitor}", 1.0, 0)
    classes._writer.wait(classes.join(member, joined))
    return member


def test_a_class_is_kept_with_who_is_in_it(store: Store):
    """Its rules, its members, and their numbers; a join that comes twice is one."""
    made = store.classes.create("Physics", 30, RULES)
    ada = join(store.classes, made.id, "ada")
    join(store.classes, made.id, "ada")
    join(store.classes, made.id, "bob", 2)
    store.classes.change_member(ada, name="Ada", runs=3)
    store.classes.count_outside(made.id, 4)
    store.classes.change(made.id, size=31, rules=Rules())
    (found,) = store.classes.all()
    assert (found.size, found.joined, found.outside) == (31, 2, 4)
    assert found.rules == Rules()
    assert [(m.name, m.runs) for m in store.classes.members(made.id)] == [
        ("Ada", 3),
        ("Name of bob", 0),
    ]


def test_one_class_is_open_at_a_time(store: Store):
    """The one that opens closes the other."""
    first, second = (store.classes.create(name, 30, RULES) for name in "ab")
    store.classes.change(first.id, is_open=True)
    store.classes.change(second.id, is_open=True)
    assert [each.name for each in store.classes.all() if each.is_open] == ["b"]


def test_a_run_is_of_the_class_that_its_visitor_is_in(store: Store):
    """Of the open one alone, and of nobody's who has not joined."""
    closed, opened = (store.classes.create(name, 30, RULES) for name in "ab")
    store.classes.change(opened.id, is_open=True)
    join(store.classes, opened.id, "ada")
    join(store.classes, closed.id, "bob")
    for visitor in ("ada", "bob", "eve"):
        store.runs.queue(f"of {visitor}", visitor, RUN, (RunConfig(),))
    assert store.classes.runs(opened.id) == {"of ada": "ada"}
    assert store.classes.runs(closed.id) == {}


def test_with_a_class_goes_what_was_done_in_it(store: Store):
    """Its members, its runs and its teacher's acts; what they did elsewhere stays."""
    made = store.classes.create("Physics", 30, RULES)
    store.runs.queue("before", "ada", RUN, (RunConfig(),))
    store.classes.change(made.id, is_open=True)
    join(store.classes, made.id, "ada")
    store.runs.queue("in it", "ada", RUN, (RunConfig(),))
    store.classes.write_down("Ms Bird", "opened the class", made.id)
    store.classes.write_down("Ms Bird", "signed in")
    store.classes.delete(made.id)
    assert store.classes.all() == store.classes.members(made.id) == []
    assert [run.id for run in store.runs.find("ada")] == ["before"]
    assert [(act.who, act.what) for act in store.classes.acts()] == [
        ("Ms Bird", "signed in")
    ]


def test_who_deletes_their_data_is_in_no_class(store: Store):
    """Their name goes with them; until then it is among what they take along."""
    made = store.classes.create("Physics", 30, RULES)
    join(store.classes, made.id, "ada")
    (told,) = json.loads(everything(store, "ada"))["classes"]
    assert (told["class"], told["name"]) == ("Physics", "Name of ada")
    store.visitors.delete("ada")
    assert store.classes.members(made.id) == []
