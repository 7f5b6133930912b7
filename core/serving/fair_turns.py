"""Turns of threads that draw for visitors, shared fairly between addresses."""

import threading
import time
from collections import deque
from collections.abc import Callable

BESIDE = 3  # threads that may be at work at once, if all but the newest take long
MOST_DOUBLED = 5  # how often the wait for those that take long may double


class FairTurns:
    """Lets threads work one at a time; addresses take turns, and in each its visitors.

    So a visitor waits for one turn of each other address, however many tabs it has
    opened and whatever they ask for. A thread that has worked for `seconds` may be
    waiting for something, so the next one begins beside it. If several take that long,
    they are busy, and the next one waits twice as long for each of them.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._lock = threading.Lock()  # guards the attributes below
        # By address and visitor, in the order in which they have the next turns
        self._waiting: dict[str, dict[str, deque[threading.Event]]] = {}
        self._working: set[threading.Event] = set()
        self._newest: threading.Event | None = None
        self._began = 0.0  # when the newest turn began, as time.monotonic

    def take(
        self,
        address: str = "",
        visitor: str = "",
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> threading.Event:
        """Wait for a turn, or until it isn't wanted anymore; see `give_back`."""
        turn = threading.Event()
        with self._lock:
            visitors = self._waiting.setdefault(address, {})
            visitors.setdefault(visitor, deque()).append(turn)
            self._begin_next()
        while not turn.wait(self.seconds):
            with self._lock:
                if not turn.is_set() and not is_wanted():
                    self._waiting[address][visitor].remove(turn)
                    self._drop_empty(address, visitor)
                    break
                self._begin_next()
        return turn

    def give_back(self, turn: threading.Event) -> None:
        """End a turn of `take`; does nothing if it has ended before."""
        with self._lock:
            self._working.discard(turn)
            if turn is self._newest:
                self._newest = None
            self._begin_next()

    def _begin_next(self) -> None:
        if not self._waiting or not self._may_begin():
            return
        address, visitors = next(iter(self._waiting.items()))
        visitor, turns = next(iter(visitors.items()))
        turn = turns.popleft()
        # Now behind the other visitors, and behind the other addresses
        visitors[visitor] = visitors.pop(visitor)
        self._waiting[address] = self._waiting.pop(address)
        self._drop_empty(address, visitor)
        self._working.add(turn)
        self._newest, self._began = turn, time.monotonic()
        turn.set()

    def _may_begin(self) -> bool:
        if self._newest is None and len(self._working) < BESIDE:
            return True
        doubled = min(len(self._working) - 1, MOST_DOUBLED)
        return time.monotonic() >= self._began + self.seconds * 2**doubled

    def _drop_empty(self, address: str, visitor: str) -> None:
        visitors = self._waiting[address]
        if not visitors[visitor]:
            del visitors[visitor]
        if not visitors:
            del self._waiting[address]
