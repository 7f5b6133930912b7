import contextlib
import io
import re
from collections import Counter
from collections.abc import Callable

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


def best(worth: Callable[[str, Question], float]) -> Callable[[Question], list[str]]:
    """Choose the answers with the largest worth; none if all are worth the same."""

    def choose(question: Question) -> list[str]:
        worths = {answer: worth(answer, question) for answer in question.answers}
        chosen = [answer for answer in worths if worths[answer] == max(worths.values())]
        return chosen if len(chosen) < len(worths) else []

    return choose


def shared(answer: str, question: Question) -> float:
    """Among answers in code: how many parts of others stand in this one, too."""
    if not all(other.startswith("`") for other in question.answers):
        return 0
    others = [re.findall(r"[\w.:]+", a) for a in question.answers if a != answer]
    parts = re.findall(r"[\w.:]+", answer)
    return sum(a == b for other in others for a, b in zip(parts, other, strict=False))


def number(answer: str, _: Question) -> float:
    found = re.search(r"\d+(\.\d+)?", answer)
    return float(found[0]) if found else -1


OFFERED = Counter(answer for question in ASKED_HERE for answer in question.answers)
TRICKS = {
    "longest": best(lambda answer, _: len(answer)),
    "shortest": best(lambda answer, _: -len(answer)),
    "has the most in common with the others": best(shared),
    "has the least in common with the others": best(lambda a, q: -shared(a, q)),
    "largest number": best(number),
    "smallest number": best(lambda answer, question: -number(answer, question)),
    "last line": best(
        lambda a, q: number(a, q) if any("Line " in b for b in q.answers) else 0
    ),
    "an error": best(lambda answer, _: "Error" in answer),
    "no error": best(lambda answer, _: "Error" not in answer),
    "part of the code": best(
        lambda answer, question: answer.strip("`") in question.code
    ),
    "decides nothing": best(
        lambda a, _: bool(re.search("can't tell|close|[Nn]othing|None of|Neither", a))
    ),
} | {
    f"always {text}": best(lambda answer, _, text=text: answer == text)
    for text, count in OFFERED.items()
    if count > 2
}


@pytest.mark.parametrize("trick", TRICKS)
def test_the_form_of_an_answer_tells_nothing(trick):
    """Whoever always follows the trick is right about as often as by chance."""
    right = chance = 0.0
    for question in ASKED_HERE:
        if chosen := TRICKS[trick](question):
            right += (question.right in chosen) / len(chosen)
            chance += 1 / len(question.answers)
    assert 0.7 * chance - 0.7 <= right <= 1.3 * chance + 0.7


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
    report, printed = code.run(question.request(), "own")
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
    ("old", "new", "names"),
    [
        ('key = "one"', "", "1 Device 'key'"),
        ('text = "Which?"', 'text = ""', "1 Device 'text'"),
        ('text = "Which?"', "text = 3", "1 Device 'text'"),
        ('text = "Which?"', 'txt = "?"', "1 Device 'text'"),
        ("[Device.right]\n", "[Device.rite]\n", "1 Device 'right'"),
        ('"this" = "Since."', '"this" = ""', "1 Device 'this'"),
        ('"this" = "Since."', '"a" = "b"\n"c" = "d"', "1 Device 2"),
        ('"neither" = "No."', "", "1 Device 2"),
        ('"that" =', '"this" =', "1 Device 'this'"),
        ("[[Device]]", "more = 1\n[[Device]]", "[[more]]"),
        ("[[Device]]", "[Device]", "Device [[Device]]"),
        ('key = "one"', 'key = "one', "questions.toml"),
        ("[[Device]]", BANK + "[[Device]]", "'one'"),
        ('key = "one"', 'key = "one"\nhint = "x"', "1 Device 'hint'"),
    ],
)
def test_a_broken_entry_is_a_sentence_with_its_place(parse, old, new, names):
    with pytest.raises(ExplainedError) as caught:
        parse(BANK.replace(old, new, 1))
    for name in names.split():
        assert name in str(caught.value)


def test_a_missing_bank_is_a_sentence(tmp_path):
    with pytest.raises(ExplainedError, match=r"questions\.toml"):
        read(tmp_path / "questions.toml", ["Device"])


@pytest.mark.parametrize(
    ("stored", "solved"), [("a", True), ("b", False), ("x", False)]
)
def test_a_single_text_kept_by_an_earlier_version_is_a_try(stored, solved):
    assert ASKED.is_solved({ASKED.key: stored}) == solved
