import threading
import time
from collections.abc import Callable

from core.serving.fair_turns import BESIDE, FairTurns
from tests.app.jobs.follow import wait

LONG = 60.0  # seconds, so that nobody begins beside another


class Line:
    """Threads that wait for turns, and in which order they got them."""

    def __init__(self, turns: FairTurns) -> None:
        self.turns, self.order, self.ended = turns, list[str](), list[str]()
        self.working = dict[str, threading.Event]()
        self.threads = list[threading.Thread]()

    def join(
        self,
        name: str,
        address: str = "",
        visitor: str = "",
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> None:
        def work() -> None:
            turn = self.turns.take(address, visitor, is_wanted)
            if turn.is_set():
                self.working[name] = turn
                self.order.append(name)

        before = self.length
        self.threads.append(thread := threading.Thread(target=work, daemon=True))
        thread.start()
        wait(lambda: not thread.is_alive() or self.length > before)

    @property
    def length(self) -> int:
        waiting = self.turns._waiting.values()
        return sum(len(turns) for visitors in waiting for turns in visitors.values())

    def empty(self) -> list[str]:
        """End the turns one after the other; returns the order in which they began."""
        while len(self.ended) < len(self.threads):
            wait(lambda: len(self.order) > len(self.ended))
            self.ended.append(name := self.order[len(self.ended)])
            self.turns.give_back(self.working[name])
        return self.order


def test_who_has_many_tabs_waits_for_the_other_addresses():
    line = Line(FairTurns(LONG))
    for number in range(5):
        line.join(f"flood {number}", "10.0.0.1", f"visitor {number}")
    line.join("other", "10.0.0.2")
    assert line.empty()[:3] == ["flood 0", "flood 1", "other"]


def test_who_has_many_tabs_waits_for_the_other_visitors_of_an_address():
    line = Line(FairTurns(LONG))
    for number in range(5):
        line.join(f"flood {number}", "10.0.0.1", "one")
    line.join("classmate", "10.0.0.1", "another")
    assert line.empty()[:3] == ["flood 0", "flood 1", "classmate"]


def test_pages_that_stay_busy_hold_up_only_a_few_turns():
    turns = FairTurns(0.01)
    busy = [turns.take() for _ in range(BESIDE)]  # each begins beside the others
    began = time.monotonic()
    turns.take()
    assert time.monotonic() - began > 2 ** (len(busy) - 1) * turns.seconds


def test_a_page_that_hangs_does_not_slow_the_others_down():
    turns = FairTurns(0.2)
    turns.take()  # it is never given back
    turns.give_back(turns.take())
    began = time.monotonic()
    for _ in range(20):
        turns.give_back(turns.take())
    assert time.monotonic() - began < turns.seconds


def test_a_closed_tab_leaves_the_line():
    line, is_open = Line(FairTurns(0.05)), [True]
    holder = line.turns.take()
    line.turns._began += LONG  # so that nobody begins beside it
    line.join("closed", is_wanted=lambda: is_open[0])
    is_open[0] = False
    wait(lambda: not line.threads[0].is_alive())
    line.turns.give_back(holder)
    assert (line.length, line.order, line.turns._waiting) == (0, [], {})
