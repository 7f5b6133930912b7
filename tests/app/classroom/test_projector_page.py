from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from core.classroom import projector_page
from core.classroom.guesses_page import Tally
from core.classroom.rules import Rules
from core.ui import charts, paper
from tests.app.store.made_up import summary
from tests.figures import figures

WALL = Path(projector_page.__file__).with_name("projector.html")
EVIL = "<script>alert(1)</script>"
RIGHT = ((EVIL,), EVIL)
TALLY = Tally(Counter({EVIL: 3}), RIGHT, 3, [], [])


def wall(**more: Any) -> str:
    """The wall on which each word that somebody wrote is evil."""
    points = [((EVIL, 590, 0.88, EVIL), ("left", -1))]
    chart = {"costs": (1, 1000), "shares": (0.8, 0.9), "points": points, "legend": []}
    return paper.template(WALL).render(
        classroom=SimpleNamespace(name=EVIL, is_open=True, code=EVIL, size=30),
        rules=Rules(quest="steps", target=0.8),
        colors=charts.LIGHT,
        lines=[EVIL, EVIL],
        chart=chart | {"x": float, "y": float},
        top=[summary(accuracy=share, steps=590) for share in (0.9, 0.7, 0.6)],
        place=lambda _: 1,
        names={"me": EVIL},
        now=[EVIL],
        right=RIGHT,
        **more,
    )


def test_the_projector_has_the_title_for_which_the_page_waits():
    assert "script" in wall().partition("<h1")[2].partition("</h1>")[0]


@pytest.mark.parametrize("more", [{}, {"tally": TALLY}, {"joining": True}])
def test_nothing_that_somebody_wrote_is_html_on_the_projector(more):
    assert "&lt;script" in wall(**more)
    assert "<script" not in wall(**more)


def test_revealed_guesses_replace_the_chart_and_before_a_run_there_is_neither():
    chart, bar = 'class="chart"', 'class="answer"'
    assert [chart in wall(), bar in wall()] == [True, False]
    assert [chart in wall(tally=TALLY), bar in wall(tally=TALLY)] == [False, True]
    assert [chart in wall(joining=True), bar in wall(joining=True)] == [False, False]


def test_the_projector_says_once_which_runs_are_not_ranked_and_why():
    ranked, once, others = wall().partition("Not ranked yet: below 80%")
    assert (ranked.count("90.00% in 590 steps"), bool(once)) == (1, True)
    assert others.count("in 590 steps") == 2


@pytest.mark.parametrize("count", [1, projector_page.MOST_MISTAKES, 11, 50])
def test_the_wall_says_if_it_shows_some_of_the_wrong_images_only(monkeypatch, count):
    """Otherwise, somebody counts ten images beside "11 of 50 images wrong"."""
    run = SimpleNamespace(
        job=SimpleNamespace(owner="me"), config=SimpleNamespace(task="")
    )
    monkeypatch.setattr(projector_page.runs, "run", lambda _: run)
    here = SimpleNamespace(machine=lambda: "a machine")
    monkeypatch.setattr(projector_page, "engine", lambda: here)
    walls = SimpleNamespace(
        images=lambda _: (None, range(50)), wrong=lambda *_: frozenset(range(count))
    )
    monkeypatch.setattr(projector_page, "image_wall", walls)
    monkeypatch.setattr(projector_page, "_picture", lambda _, some, __: len(some))
    classroom = SimpleNamespace(rules=Rules())
    names = {"me": "Ada"}
    standings = SimpleNamespace(newest="a run", names=names, classroom=classroom)
    text, shown = projector_page._mistakes(standings)
    assert figures(text) == [str(count), "50", *[str(shown)] * (count > shown)]
