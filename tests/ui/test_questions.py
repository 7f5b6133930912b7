"""core.ui.questions: the bank at the end of the lessons."""

import re

import pytest

from core.errors import ExplainedError
from core.ui import course
from core.ui.questions import Question, read

BANK = """
[[Device]]
key = "one"
text = "Which?"
[Device.right]
"this" = "Since."
[Device.wrong]
"that" = "No."
"neither" = "No."
"""
ASKED = Question("question_one", "Which?", "a", {"a": "Yes.", "b": "No.", "c": "No."})


@pytest.fixture
def parse(tmp_path):
    def read_text(text: str) -> dict[str, tuple[Question, ...]]:
        file = tmp_path / "questions.toml"
        file.write_text(text)
        return read(file, ["Device", "Model"])

    return read_text


def test_a_lesson_asks_three_to_five_questions_and_each_answer_teaches():
    """In the bank of the course; the right one is no longer than all the others."""
    assert course.BROKEN == ""
    for lesson in course.LESSONS:
        assert 3 <= len(lesson.questions) <= 5
        for each in lesson.questions:
            assert each.right in each.answers
            assert len(set(each.answers.values())) == len(each.answers) >= 3


def test_the_longest_answer_is_not_the_right_one_by_rule():
    """Whoever always takes the longest is right in half of all cases at most."""
    asked = [each for lesson in course.LESSONS for each in lesson.questions]
    longest = [max(each.answers, key=len) == each.right for each in asked]
    assert sum(longest) <= len(asked) / 2


def test_an_entry_is_a_question(parse):
    (asked,) = parse(BANK)["Device"]
    assert (asked.key, asked.right) == ("question_one", "this")
    assert asked.answers == {"this": "Since.", "that": "No.", "neither": "No."}


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('key = "one"', "", "question 1 of Device has no 'key'"),
        ('text = "Which?"', 'text = ""', "question 1 of Device has no 'text'"),
        ('text = "Which?"', "text = 3", "question 1 of Device: 'text' is not a text"),
        ('text = "Which?"', 'txt = "?"', "question 1 of Device has no 'text'"),
        ("[Device.right]\n", "[Device.rite]\n", "Device has no 'right'"),
        ('"this" = "Since."', '"this" = ""', "Device: the answer 'this' says nothing"),
        ('"this" = "Since."', '"a" = "b"\n"c" = "d"', "Device has 2 right answers"),
        ('"neither" = "No."', "", "Device has fewer than 2 wrong answers"),
        ('"that" =', '"this" =', "Device: the answer 'this' is both right and wrong"),
        ("[[Device]]", "more = 1\n[[Device]]", "[[more]] is no lesson"),
        ("[[Device]]", "[Device]", "a question of Device begins with [[Device]]"),
        ('key = "one"', 'key = "one', "can't be read"),
        ("[[Device]]", BANK + "[[Device]]", "two questions have the key 'one'"),
        ('key = "one"', 'key = "one"\nhint = "x"', "Device has 'hint', which is none"),
    ],
)
def test_a_broken_entry_is_a_sentence(parse, old, new, told):
    """Which lesson it is of, and what it lacks."""
    with pytest.raises(ExplainedError, match=re.escape(told)):
        parse(BANK.replace(old, new, 1))


def test_a_bank_that_is_missing_is_a_sentence(tmp_path):
    with pytest.raises(ExplainedError, match="No such file"):
        read(tmp_path / "questions.toml", ["Device"])


def test_the_first_try_counts_and_any_try_solves():
    """And a try is not forgotten because another one follows."""
    tries: list[str] = []
    for chosen in ("b", "a", "c", "a", "b"):
        tries = ASKED.after(tries, chosen)
    given = {ASKED.key: tries}
    assert tries == ["b", "c", "a", "b"]
    assert ASKED.is_solved(given)
    assert not ASKED.at_first(given)
    assert ASKED.at_first({ASKED.key: ["a", "b"]})


@pytest.mark.parametrize(("kept", "solved"), [("a", True), ("b", False), ("x", False)])
def test_what_was_kept_before_tries_were_counted_is_a_try(kept, solved):
    """A text instead of a list; one that is no answer any more is none."""
    assert ASKED.is_solved({ASKED.key: kept}) == solved
    assert ASKED.at_first({ASKED.key: kept}) == solved


def test_answers_are_shuffled_by_visitor_and_stay_so():
    """A reload keeps the order; over many visitors each answer stands everywhere."""
    people = [f"visitor {number}" for number in range(60)]
    orders = [ASKED.shuffled(each) for each in people]
    assert orders == [ASKED.shuffled(each) for each in people]
    assert {order.index("a") for order in orders} == {0, 1, 2}
