"""core.classroom.handout: a page to take home."""

from dataclasses import replace
from html.parser import HTMLParser

from core.classroom.handout import HandOut, Hard, Point, page

FULL = HandOut(
    title="Monday",
    day="November 22, 2026",
    machine="A card",
    people=3,
    runs=7,
    target=0.88,
    points=[
        Point("Amber Otter", "ANN, default settings", 0.884, 3.2),
        Point("Tidy Newt", "CNN, 3 epochs", 0.912, 41.0),
        Point("Zoë", "ANN, 1 epoch", 0.79, 0.9),
    ],
    hard=[Hard("Which `step`?", "`step()`", "It **moves** them", "1 of 3")],
    guesses=[("Speed: Fused", "Same (2 of 3)", "Up to 2×: 1.4×")],
    loop="for x in y:\n    pass",
)


class Elements(HTMLParser):
    """How often each element begins; and the texts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.begun: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, _):
        self.begun.append(tag)
        if tag not in ("meta", "path", "circle"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in ("path", "circle"):
            assert self.open.pop() == tag


def test_the_page_tells_what_the_class_found_out():
    """The fastest at the target, a dot a person, what was hard and guessed."""
    text = page(FULL)
    assert "<b>88% in 3.2 s</b> by Amber Otter" in text
    assert "91.20% at best" in text
    assert "<code>step()</code>" in text
    assert "Up to 2×: 1.4×" in text
    found = Elements(text)
    assert found.begun.count("circle") == 3
    assert found.open == []


def test_a_class_without_a_run_has_a_page_too():
    """And one whose people have no names."""
    text = page(replace(FULL, points=[], hard=[], guesses=[]))
    assert "No run has finished" in text
    assert "circle" not in Elements(text).begun
    nameless = [replace(each, name="") for each in FULL.points]
    assert (
        " by " not in page(replace(FULL, points=nameless)).partition("</h2>")[2][:200]
    )
    one = page(replace(FULL, points=[Point("Zoë", "ANN", 1.0, 10.0)]))
    assert Elements(one).open == []


def test_nothing_that_a_student_wrote_is_html():
    """Names and run names come from strangers."""
    evil = '<script>alert("x")</script><img src=x onerror=y>'
    told = page(
        replace(FULL, title=evil, points=[Point(evil, f"ANN, {evil}", 0.9, 1.0)])
    )
    found = Elements(told).begun
    assert "script" not in found
    assert "img" not in found
