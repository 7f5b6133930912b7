import re
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any

from core.classroom.handout_page import page
from core.classroom.questions_page import Score
from core.classroom.rules import Rules
from core.store.tables import RunSummary
from core.ui.questions import Question
from tests.app.store.made_up import summary

QUESTION = Question(
    "key", "Which `step`?", "`step()`", {"`step()`": "It **moves** them"}
)
EVIL = '<script>alert("x")</script><img src=x onerror=y>'


def run(who: str, accuracy: float, seconds: float, steps: int, **more) -> RunSummary:
    figures = dict(accuracy=accuracy, seconds=seconds, steps=steps)
    return summary(visitor=who, **figures, **more)


FULL: dict[str, Any] = {
    "title": "Monday",
    "day": "November 22, 2026",
    "machine": "A card",
    "people": 3,
    "runs": 1,
    "rules": Rules(quest="steps"),
    "names": {"amber": "Amber Otter", "tidy": "Tidy Newt", "zoe": "Zoë"},
    "best": [
        run("amber", 0.884, 3.2, 2345),
        run("tidy", 0.912, 41.0, 1407, model="cnn", epochs=3),
        run("zoe", 0.79, 0.9, 469, epochs=1),
    ],
    "hard": [Score("Train", QUESTION, answered=3, right=1, mistaken="`zero_grad()`")],
    "guesses": [("Speed: Fused", "Same (2 of 3)", "Up to 2×: 1.4×")],
    "code": "for x in y:\n    pass",
}


class Elements(HTMLParser):
    """The elements of a page, each of which has to end."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.begun: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.begun.append(tag)
        assert {"src", "href"}.isdisjoint(dict(attributes))
        if tag not in ("meta", "path", "circle"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in ("path", "circle"):
            assert self.open.pop() == tag


def test_the_page_shows_what_the_class_reached_guessed_and_found_hard():
    text = page(**FULL)
    assert "<b>The quest: 88.40% in 2,345 steps</b> by Amber Otter: ANN, batch" in text
    assert "The best accuracy is 91.20%" in text
    assert "<code>step()</code>" in text
    assert "<b>moves</b>" in text
    assert "1 of 3 right on the first try" in text
    assert "Up to 2×: 1.4×" in text
    assert "3 people ·\n1 run ·" in text
    assert "for x in y:\n    pass" in text
    assert "training steps; the dashed line" in text
    assert "<td>2,345</td>" in text
    assert Elements(text).begun.count("circle") == 3
    chart = text.partition("<svg")[2].partition("</svg")[0]
    assert sum(name in chart for name in FULL["names"].values()) == 3
    label = r'<text x="([\d.]+)" y="180" text-anchor="middle">([^<]+)<'
    places = [(float(x), 2.8 * len(text)) for x, text in re.findall(label, chart)]
    assert len(places) > 2
    ends = [(x - half, x + half) for x, half in sorted(places)]
    assert all(one[1] < other[0] for one, other in pairwise(ends))


def test_a_class_without_runs_or_with_hidden_names_has_a_page_too():
    text = page(**FULL | {"best": [], "hard": [], "guesses": []})
    assert "No run has finished" in text
    assert "circle" not in Elements(text).begun
    assert "</b>: ANN, batch 64" in page(**FULL | {"names": {}})
    alone = page(**FULL | {"best": [run("zoe", 0.5, 10.0, 469)]})
    assert "The best accuracy is 50.00%. Nobody is ranked in the quest." in alone
    assert Elements(alone).begun.count("circle") == 1


def test_nothing_that_a_student_wrote_is_html():
    question = Question("key", f"`{EVIL}`", EVIL, {EVIL: f"**{EVIL}**"})
    fields = {
        "title": EVIL,
        "names": {"amber": EVIL},
        "best": [run("amber", 0.9, 1.0, 469, model=EVIL)],
        "hard": [Score(EVIL, question, 1, 0, EVIL)],
        "guesses": [(EVIL, EVIL, EVIL)],
    }
    assert {"script", "img"}.isdisjoint(Elements(page(**FULL | fields)).begun)
