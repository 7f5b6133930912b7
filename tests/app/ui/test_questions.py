import contextlib
import io
import re

import pytest
import torch

from core.jobs import code
from core.ui import course
from core.ui.questions import Question, read
from to_device.dryrun.report import NOT_SIMULATED
from to_device.errors import ExplainedError

pytestmark = pytest.mark.usefixtures("unhurried")

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


def test_a_lesson_asks_a_few_questions_and_each_wrong_answer_has_its_own_reason():
    assert course.BROKEN == ""
    assert all(3 <= len(lesson.questions) <= 6 for lesson in course.LESSONS)
    reasons = []
    for question in ASKED_HERE:
        replies = dict(question.answers)
        assert replies.pop(question.right) not in replies.values()
        assert len(replies) >= 2
        reasons += replies.values()
    assert len({*reasons}) == len(reasons)
    assert all(len(reason.split()) >= 8 for reason in reasons)


ASKED_HERE = [question for lesson in course.LESSONS for question in lesson.questions]
RUN = [question for question in ASKED_HERE if question.code and not question.check]


def test_the_length_of_an_answer_tells_nothing():
    """The right one is the longest, and the shortest, about as often as any other."""
    longest = shortest = chance = 0.0
    for question in ASKED_HERE:
        lengths = [len(answer) for answer in question.answers]
        right = len(question.right)
        longest += (right == max(lengths)) / lengths.count(right)
        shortest += (right == min(lengths)) / lengths.count(right)
        chance += 1 / len(lengths)
    assert 0.7 * chance <= longest <= 1.2 * chance
    assert 0.7 * chance <= shortest <= 1.4 * chance


def test_each_place_is_the_right_one_equally_often():
    places = [
        question.shuffled(f"visitor {number}").index(question.right)
        for question in ASKED_HERE
        if len(question.answers) == 3
        for number in range(100)
    ]
    assert all(0.3 < places.count(place) / len(places) < 0.37 for place in range(3))
    assert ASKED.shuffled("ada") == ASKED.shuffled("ada")


@pytest.mark.parametrize("question", RUN, ids=lambda question: question.key)
def test_the_right_answer_is_what_running_the_code_comes_to(question):
    report, printed = code.run(question.request(), confine=False)
    if report["status"] == NOT_SIMULATED and torch.accelerator.is_available():
        pytest.skip("no simulated GPU beside a real one")
    failure = report["failure"]
    came_to = [*printed.splitlines()[:1], "None of them"]
    if failure:
        came_to = [f"Line {failure['line']['line']}", failure["kind"]]
    answers = {answer.partition("`, ")[0].strip("`") for answer in question.answers}
    right = question.right.strip("`")
    if question.measured:
        assert came_to[0] in answers
    else:
        assert right in came_to, report["notes"]
        assert not (answers - {right}) & {*came_to}


@pytest.mark.parametrize(
    "question",
    [question for question in ASKED_HERE if question.check],
    ids=lambda question: question.key,
)
def test_what_a_question_claims_is_proved(question):
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(question.code, {})
    exec(question.check, {"printed": output.getvalue().strip()})


def test_an_entry_is_a_question(parse):
    (question,) = parse(BANK)["Device"]
    assert (question.key, question.right) == ("question_one", "this")
    assert question.answers == {"this": "Since.", "that": "No.", "neither": "No."}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('key = "one"', "", "question 1 of Device has no 'key'"),
        ('text = "Which?"', 'text = ""', "question 1 of Device has no 'text'"),
        ('text = "Which?"', "text = 3", "question 1 of Device: 'text' must be text"),
        ('text = "Which?"', 'txt = "?"', "question 1 of Device has no 'text'"),
        ("[Device.right]\n", "[Device.rite]\n", "Device has no 'right'"),
        ('"this" = "Since."', '"this" = ""', "Device: the answer 'this' has no reply"),
        ('"this" = "Since."', '"a" = "b"\n"c" = "d"', "Device has 2 right answers"),
        ('"neither" = "No."', "", "Device has fewer than 2 wrong answers"),
        ('"that" =', '"this" =', "Device: the answer 'this' is both right and wrong"),
        ("[[Device]]", "more = 1\n[[Device]]", "[[more]] is not a lesson"),
        (
            "[[Device]]",
            "[Device]",
            "each question of Device must begin with [[Device]]",
        ),
        ('key = "one"', 'key = "one', "can't be read"),
        ("[[Device]]", BANK + "[[Device]]", "two questions have the key 'one'"),
        (
            'key = "one"',
            'key = "one"\nhint = "x"',
            "Device has 'hint', which is not one",
        ),
    ],
)
def test_a_broken_entry_is_a_sentence_with_its_place(parse, old, new, message):
    with pytest.raises(ExplainedError, match=re.escape(message)):
        parse(BANK.replace(old, new, 1))


def test_a_missing_bank_is_a_sentence(tmp_path):
    with pytest.raises(ExplainedError, match="No such file"):
        read(tmp_path / "questions.toml", ["Device"])


@pytest.mark.parametrize(
    ("stored", "solved"), [("a", True), ("b", False), ("x", False)]
)
def test_a_single_text_kept_by_an_earlier_version_is_a_try(stored, solved):
    assert ASKED.is_solved({ASKED.key: stored}) == solved
