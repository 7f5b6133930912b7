from core.classroom.questions_page import KEYS, scores
from core.ui.course import LESSONS
from tests.figures import figures


def test_the_first_try_counts_and_the_hardest_comes_first():
    first, second = LESSONS[0].questions[:2]
    wrong = next(answer for answer in first.answers if answer != first.right)
    answers = {
        first.key: {"a": [wrong, first.right], "b": [wrong], "c": [first.right]},
        second.key: {"a": [second.right], "b": second.right},  # a format of earlier
    }
    hard, easy = scores(answers)
    assert (hard.question, hard.right, hard.answered) == (first, 1, 3)
    assert hard.mistaken == wrong
    assert figures(hard.text)[:2] == ["1", "3"]
    (alone,) = scores({first.key: {"b": [wrong]}})
    assert "one person" in alone.text
    assert not figures(alone.text)
    assert (easy.question, easy.right, easy.answered) == (second, 2, 2)
    assert easy.mistaken == ""
    assert scores({}) == []
    assert {first.key, second.key} <= set(KEYS)
