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
    assert course.BROKEN == ""
    for lesson in course.LESSONS:
        assert 3 <= len(lesson.questions) <= 5
        for question in lesson.questions:
            assert question.right in question.answers
            replies = set(question.answers.values())
            assert len(replies) == len(question.answers) >= 3


def test_the_longest_answer_is_right_in_half_of_all_cases_at_most():
    asked = [each for lesson in course.LESSONS for each in lesson.questions]
    longest = [max(each.answers, key=len) == each.right for each in asked]
    assert sum(longest) <= len(asked) / 2


def test_an_entry_is_a_question(parse):
    (question,) = parse(BANK)["Device"]
    assert (question.key, question.right) == ("question_one", "this")
    assert question.answers == {"this": "Since.", "that": "No.", "neither": "No."}


@pytest.mark.parametrize(
    ("old", "new", "message"),
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
def test_a_broken_entry_is_a_sentence_with_its_place(parse, old, new, message):
    with pytest.raises(ExplainedError, match=re.escape(message)):
        parse(BANK.replace(old, new, 1))


def test_a_missing_bank_is_a_sentence(tmp_path):
    with pytest.raises(ExplainedError, match="No such file"):
        read(tmp_path / "questions.toml", ["Device"])


def test_the_first_try_counts_and_any_try_solves():
    tries: list[str] = []
    for chosen in ("b", "a", "c", "a", "b"):
        tries = ASKED.after(tries, chosen)
    given = {ASKED.key: tries}
    assert tries == ["b", "c", "a", "b"]
    assert ASKED.is_solved(given)
    assert not ASKED.at_first(given)
    assert ASKED.at_first({ASKED.key: ["a", "b"]})


@pytest.mark.parametrize(("kept", "solved"), [("a", True), ("b", False), ("x", False)])
def test_a_single_text_kept_by_an_earlier_version_is_a_try(kept, solved):
    assert ASKED.is_solved({ASKED.key: kept}) == solved
    assert ASKED.at_first({ASKED.key: kept}) == solved


def test_a_visitor_finds_the_answers_in_one_order_and_all_orders_occur():
    orders = [ASKED.shuffled(f"visitor {number}") for number in range(60)]
    assert orders == [ASKED.shuffled(f"visitor {number}") for number in range(60)]
    assert {order.index("a") for order in orders} == {0, 1, 2}
