from core.classroom.standings_page import bests, neighbors, ranking, stuck
from core.store.tables import Member
from tests.store.made_up import summary

NAMES = {"ada": "Ada", "bob": "Bob", "cy": "Cy", "di": "Di"}


def run(visitor: str, accuracy: float | None = None, seconds: float = 9.0, **more):
    given = dict(visitor=visitor, task="sprites", accuracy=accuracy, seconds=seconds)
    return summary(**given | more)


def test_the_best_run_is_the_fastest_at_the_target_or_else_the_most_accurate():
    best = bests(
        [
            run("ada", 0.90, 8.0, id="slow"),
            run("ada", 0.88, 3.0, id="fast"),
            run("ada", 0.87, 1.0, id="below the target"),
            run("ada", 0.80, 1.0, id="another task", task="fashion-mnist"),
            run("bob", 0.70, 1.0, id="early"),
            run("bob", 0.80, 9.0, id="better"),
            run("bob", None, id="failed"),
            run("eve", 0.99, 0.1, id="not in the class"),
        ],
        NAMES,
        0.88,
    )
    assert [each.run_id for each in best] == ["fast", "another task", "better"]
    assert [each.name for each in ranking(best, "sprites", 0.88)] == ["Ada"]


def test_a_visitor_sees_the_first_and_their_neighbors():
    runs = [run(who, 0.9, n) for n, who in enumerate(NAMES, 1)]
    order = ranking(bests(runs, NAMES, 0.88), "sprites", 0.88)

    def places(visitor: str) -> str:
        return " ".join(f"{p} {best.name}" for p, best in neighbors(order, visitor))

    assert places("ada") == "1 Ada 2 Bob"
    assert places("di") == "1 Ada 3 Cy 4 Di"
    assert places("nobody") == "1 Ada 2 Bob 3 Cy"
    assert neighbors([], "ada") == []


def test_without_a_run_or_after_a_failed_one_a_member_is_stuck_unless_they_train():
    members = [Member("a class", who, name, 1.0, 0) for who, name in NAMES.items()]
    runs = [
        run("ada", status="failed", message="The memory ran out."),
        run("ada", 0.9),
        run("bob", 0.9),
        run("bob", status="failed", message="Long ago."),
    ]
    why = stuck(members, runs, ["di"])
    assert {member.name: reason for member, reason in why.items()} == {
        "Ada": "The last run failed: The memory ran out.",
        "Cy": "No run yet.",
    }
