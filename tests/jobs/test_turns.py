"""Quick questions: few at once, and fairly between people."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from core.errors import ExplainedError
from core.jobs import turns as module
from core.jobs.turns import Turns


class Crowd:
    """Threads that wait at a gate, and the order in which they came through."""

    def __init__(self, turns: Turns) -> None:
        self.turns, self.asked, self.go_on = turns, [], threading.Event()
        self.pool = ThreadPoolExecutor(32)

    def come(self, owner: str) -> None:
        """Ask, and hold the turn until all may go on."""
        before = self.turns._queue.of(owner)

        def ask() -> None:
            with self.turns.take(owner, 20):
                self.asked.append(owner)
                self.go_on.wait(20)

        self.pool.submit(ask)
        wait_until(lambda: self.turns._queue.of(owner) > before)

    def settle(self) -> list[str]:
        """Who is being answered, once nobody moves."""
        time.sleep(0.05)
        return self.asked

    def leave(self) -> None:
        self.go_on.set()
        self.pool.shutdown()


def wait_until(condition) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_one_person_does_not_take_all_threads():
    """Two are answered at once; a third waits, and somebody else is answered."""
    crowd = Crowd(Turns(at_once=4))
    for owner in ("ada", "ada", "ada", "bob"):
        crowd.come(owner)
    assert sorted(crowd.settle()) == ["ada", "ada", "bob"]
    crowd.leave()
    assert sorted(crowd.asked) == ["ada", "ada", "ada", "bob"]


def test_whoever_asked_least_is_next():
    """Of those that wait when a thread is free, not who asked most."""
    crowd = Crowd(Turns(at_once=1))
    for owner in ("ada", "ada", "ada", "bob", "cid"):
        crowd.come(owner)
    crowd.leave()
    assert crowd.asked == ["ada", "bob", "cid", "ada", "ada"]


def test_a_turn_that_does_not_come_is_a_sentence():
    """And what was asked in vain holds up nobody."""
    turns = Turns(at_once=1)
    with turns.take("ada", 5):
        with pytest.raises(ExplainedError, match="busy with"), turns.take("bob", 0.05):
            pytest.fail("there is one thread")
        with turns.take("", 5) as left:  # the server's own is no guest
            assert left == 5
    with turns.take("bob", 0.05) as left:
        assert 0 < left <= 0.1


def test_many_open_questions_are_refused():
    """A person who opens a hundred tabs takes no hundred threads of the server."""
    turns = Turns(at_once=1)
    crowd = Crowd(turns)
    for _ in range(module.MOST):
        crowd.come("ada")
    with pytest.raises(ExplainedError, match="many questions"), turns.take("ada", 5):
        pytest.fail("she has enough")
    crowd.leave()
    assert turns._queue.of("ada") == 0


def test_files_are_opened_two_at_once_and_one_of_each_person():
    """However many somebody sends, the next person's file is opened beside them."""
    crowd = Crowd(Turns(module.UPLOADS_AT_ONCE, "upload"))
    for owner in ("eve", "eve", "eve", "ada", "bob"):
        crowd.come(owner)
    assert sorted(crowd.settle()) == ["ada", "eve"]
    crowd.leave()
    assert sorted(crowd.asked) == ["ada", "bob", "eve", "eve", "eve"]


def test_a_turn_ends_with_an_error():
    turns = Turns(at_once=1)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError), turns.take("ada", 1):
            raise ZeroDivisionError


def test_a_turn_that_is_free_costs_next_to_nothing():
    """A quick question is a matter of milliseconds; the gate of microseconds."""
    turns = Turns()
    began = time.perf_counter()
    for _ in range(100):
        with turns.take("ada", 1):
            pass
    assert (time.perf_counter() - began) / 100 < 0.005
