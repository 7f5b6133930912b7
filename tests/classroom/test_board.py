"""core.classroom.board: everybody's best, places, and who is stuck."""

from dataclasses import fields

from core.classroom.board import bests, neighbors, ranking, stuck
from core.store.classes import Member
from core.store.results import RunSummary

NAMES = {"ada": "Ada", "bob": "Bob", "cy": "Cy", "di": "Di"}


def run(visitor: str, accuracy: float | None = None, seconds: float = 9.0, **more):
    """A run as lists have it, with little but what counts here."""
    row = dict.fromkeys(field.name for field in fields(RunSummary))
    told = {"id": "", "visitor": visitor, "task": "sprites", "status": "finished"}
    return RunSummary(**row | told | {"accuracy": accuracy, "seconds": seconds} | more)


def test_the_best_is_the_fastest_that_reached_the_target():
    """Else the most accurate; of each task one, of nobody who is not in the class."""
    found = bests(
        [
            run("ada", 0.90, 8.0, id="slow"),
            run("ada", 0.88, 3.0, id="fast"),
            run("ada", 0.87, 1.0, id="short of it"),
            run("ada", 0.80, 1.0, id="another task", task="fashion-mnist"),
            run("bob", 0.70, 1.0, id="early"),
            run("bob", 0.80, 9.0, id="better"),
            run("bob", None, id="failed"),
            run("eve", 0.99, 0.1, id="not of the class"),
        ],
        NAMES,
        0.88,
    )
    assert [each.run_id for each in found] == ["fast", "another task", "better"]
    assert [each.name for each in ranking(found, "sprites", 0.88)] == ["Ada"]


def test_i_see_the_first_and_my_neighbors():
    """Not a list of everybody; who has no place yet sees the first three."""
    runs = [run(who, 0.9, n) for n, who in enumerate(NAMES, 1)]
    order = ranking(bests(runs, NAMES, 0.88), "sprites", 0.88)

    def shown(visitor: str) -> str:
        return " ".join(f"{p} {each.name}" for p, each in neighbors(order, visitor))

    assert shown("ada") == "1 Ada 2 Bob"
    assert shown("di") == "1 Ada 3 Cy 4 Di"
    assert shown("nobody") == "1 Ada 2 Bob 3 Cy"
    assert neighbors([], "ada") == []


def test_who_is_stuck_is_seen_at_a_glance():
    """No run yet, or the newest one failed, with its error; not who trains now."""
    members = [Member("a class", who, name, 1.0, 0) for who, name in NAMES.items()]
    runs = [
        run("ada", status="failed", message="The memory ran out."),
        run("ada", 0.9),
        run("bob", 0.9),
        run("bob", status="failed", message="Long ago."),
    ]
    assert [(each.member.name, each.why) for each in stuck(members, runs, ["di"])] == [
        ("Ada", "The last run failed: The memory ran out."),
        ("Cy", "No run yet."),
    ]
