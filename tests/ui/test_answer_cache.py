"""Answers that are kept: who waits for them, and when they are asked anew."""

import threading
import time

import pytest

from core.errors import ExplainedError
from core.ui.answer_cache import KeptAnswer
from tests.jobs.follow import wait


def test_a_stale_answer_is_shown_while_it_is_asked_anew():
    """Whoever looks does not wait, and the next look finds the new answer."""
    asked, may_answer = [], threading.Event()

    def question() -> int:
        asked.append(len(asked))
        assert len(asked) == 1 or may_answer.wait(10)
        return len(asked)

    kept = KeptAnswer(question, seconds=0)
    assert kept.newest is None
    assert kept() == 1
    assert [kept(), kept(), kept()] == [1, 1, 1]
    assert asked == [0, 1]  # one question at a time
    may_answer.set()
    wait(lambda: kept.newest == 2)


def test_a_fresh_answer_is_not_asked_anew():
    """Until it is cleared."""
    answers = iter("ab")
    kept = KeptAnswer(lambda: next(answers), seconds=60)
    assert [kept(), kept()] == ["a", "a"]
    kept.clear()
    assert kept() == "b"


def test_all_who_wait_hear_the_same_failure_and_the_next_asks_again():
    """A class that opens a page does not wait one after the other."""
    may_answer, heard = threading.Event(), []
    problems = [ExplainedError("no answer")]

    def question() -> str:
        assert may_answer.wait(10)
        if problems:
            raise problems.pop()
        return "here"

    def look() -> None:
        try:
            heard.append(kept())
        except ExplainedError as error:
            heard.append(str(error))

    kept = KeptAnswer(question, seconds=60)
    people = [threading.Thread(target=look) for _ in range(5)]
    for each in people:
        each.start()
    time.sleep(0.1)
    may_answer.set()
    for each in people:
        each.join()
    assert set(heard) <= {"no answer", "here"}
    assert "no answer" in heard
    assert kept() == "here"


def test_an_answer_that_can_not_be_had_again_is_not_shown_for_ever():
    """Where asking anew fails, the next who looks is told so."""
    answers = iter(["old"])

    def question() -> str:
        for answer in answers:
            return answer
        raise ExplainedError("no answer")

    kept = KeptAnswer(question, seconds=0)
    assert kept() == "old"
    kept()  # asks anew, which fails
    wait(lambda: kept.newest is None)
    with pytest.raises(ExplainedError):
        kept()
