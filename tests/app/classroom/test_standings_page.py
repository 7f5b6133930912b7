from types import SimpleNamespace

import pytest

from core.classroom.rules import WITHIN, Rules
from core.classroom.standings_page import (
    Standings,
    bests,
    luck,
    neighbors,
    newest_model,
    stuck,
)
from core.ui.format import ENDINGS
from tests.app.store.made_up import summary
from tests.figures import figures
from to_device.names import SIMULATED

NAMES = {"ada": "Ada", "bob": "Bob", "cy": "Cy", "di": "Di"}
RULES = Rules(target=0.88)


def run(visitor: str, accuracy: float | None = None, seconds: float = 9.0, **more):
    figures = dict(task="sprites", accuracy=accuracy, seconds=seconds, steps=590)
    return summary(visitor=visitor, **figures | more)


def test_the_best_run_is_the_fastest_at_the_target_or_else_the_most_accurate():
    best = bests(
        [
            run("ada", 0.90, 8.0, id="slow"),
            run("ada", 0.88, 3.0, id="fast"),
            run("ada", 0.87, 1.0, id="below the target"),
            run("bob", 0.70, 1.0, id="early"),
            run("bob", 0.80, 9.0, id="better"),
            run("bob", None, id="failed"),
            run("ada", 0.89, 2.0, id="steered", changes={"100": 0.01}),
            run("eve", 0.99, 0.1, id="not in the class"),
        ],
        NAMES,
        RULES,
    )
    assert {run.id for run in best} == {"fast", "better"}
    assert best[0].id == "fast"
    assert [run.visitor for run in best if RULES.reached(run)] == ["ada"]


@pytest.mark.parametrize(
    ("quest", "first"),
    [("seconds", "quick"), ("steps", "few"), ("accuracy", "best in time")],
)
def test_each_quest_has_another_winner(quest, first):
    rules = Rules(target=0.88, quest=quest)
    runs = [
        run("ada", 0.88, 2.0, steps=2345, id="quick"),
        run("bob", 0.881, 4.0, steps=590, id="few"),
        run("cy", 0.90, WITHIN - 1, steps=9000, id="best in time"),
        run("di", 0.93, WITHIN + 1, steps=9000, id="too long"),
    ]
    assert bests(runs, NAMES, rules)[0].id == first


def test_equal_runs_share_a_place_and_the_earlier_one_is_named_first():
    rules = Rules(target=0.88, quest="steps")
    runs = [run(who, 0.89, steps=590, seq=n) for n, who in enumerate(NAMES)]
    for listed in (runs, runs[::-1]):
        assert [run.visitor for run in bests(listed, NAMES, rules)] == [*NAMES]
    order = bests([run("ada", 0.9, steps=900), *runs[1:]], NAMES, rules)
    standings = SimpleNamespace(classroom=SimpleNamespace(rules=rules), order=order)
    assert [Standings.place(standings, run) for run in order] == [1, 1, 1, 4]


def test_luck_is_what_runs_differ_in_that_have_other_seeds_alone():
    seeds = [run("ada", 0.87 + n / 1000, seed=n) for n in range(4)]
    others = [run("bob", 0.5, batch_size=32), run("bob", 0.1, seed=9, status="failed")]
    sentence = luck(seeds + others + seeds, seeds)
    assert figures(sentence)[:4] == ["0.30", "4", "87.00", "87.30"]
    assert "batch 64" in sentence
    numbers = [run("ada", task="regression", seed=n) for n in range(4)]
    assert luck(numbers, numbers) == luck(seeds[:2] + others, seeds) == ""
    # Of the settings in the lead, though others were run more often
    lead = [run("eve", 0.8 + n / 100, seed=n, batch_size=256) for n in range(3)]
    sentence = luck(seeds + lead, [lead[0], seeds[0]])
    assert figures(sentence)[:4] == ["2.00", "3", "80.00", "82.00"]
    assert "the best run's" in sentence
    sentence = luck(seeds + lead[:2], [lead[0], seeds[0]])
    assert figures(sentence)[:2] == ["0.30", "4"]
    assert "another run" in sentence
    assert luck(seeds, lead[:1]) == luck(seeds, []) == ""


def test_the_newest_model_is_tested_and_of_a_run_that_goes_on_or_has_finished():
    none = [
        *(run("ada", 0.8, status=status) for status in ENDINGS),
        run("bob", None, status="running"),
        run("cy", 0.8, device=SIMULATED),
    ]
    assert newest_model(none) == ""
    for status in ("running", "finished"):
        tested = [run("di", 0.7, id="a", status=status), run("ada", 0.9, id="b")]
        assert newest_model([*none, *tested]) == "a"


def test_a_visitor_sees_the_first_and_their_neighbors():
    order = bests([run(who, 0.9, n) for n, who in enumerate(NAMES, 1)], NAMES, RULES)

    def places(visitor: str) -> str:
        return " ".join(best.visitor for best in neighbors(order, visitor))

    assert places("ada") == "ada bob"
    assert places("di") == "ada cy di"
    assert places("nobody") == "ada bob cy"
    assert neighbors([], "ada") == []


def test_without_a_run_or_after_a_failed_one_a_member_is_stuck_unless_they_train():
    runs = [
        run("ada", status="failed", message="There was not enough memory."),
        run("ada", 0.9),
        run("bob", 0.9),
        run("bob", status="failed", message="Long ago."),
    ]
    assert [*stuck(NAMES, runs[:2])] == ["ada"]
    assert [*stuck(NAMES, runs, ["di"], new=["ada", "cy"])] == ["ada"]
    why = stuck(NAMES, runs, ["di"])
    assert [*why] == ["ada", "cy"]
    assert "There was not enough memory." in why["ada"]
    told = stuck(
        NAMES, runs[1:], ["bob", "di"], ["cy"], {"bob": "Too long.", "cy": "Long."}
    )
    assert told == {"cy": "Long."}
