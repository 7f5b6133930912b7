"""core.ui.classroom.teacher.questions: what the class got wrong."""

from core.ui.classroom.teacher.questions import KEYS, asked
from core.ui.course import LESSONS


def test_the_first_try_counts_and_the_hardest_comes_first():
    """Who got it right later found it hard all the same."""
    first, second = LESSONS[0].questions[:2]
    wrong = next(each for each in first.answers if each != first.right)
    given = {
        first.key: {"a": [wrong, first.right], "b": [wrong], "c": [first.right]},
        second.key: {"a": [second.right], "b": second.right},  # as it once was kept
    }
    hard, easy = asked(LESSONS, given)
    assert (hard.question, hard.right, hard.answered) == (first, 1, 3)
    assert hard.mistaken == wrong
    assert (easy.question, easy.share, easy.mistaken) == (second, 1.0, "")
    assert asked(LESSONS, {}) == []
    assert {first.key, second.key} <= set(KEYS)
