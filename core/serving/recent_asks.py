"""How often each visitor has asked for something slow in the last minute."""

import time
from collections import Counter, deque

SECONDS = 60.0


class RecentAsks:
    """Counts asks by visitor, each for SECONDS."""

    def __init__(self) -> None:
        self._asks: deque[tuple[float, str]] = deque()  # when, and by whom
        self._counts = Counter[str]()

    def add(self, visitor: str) -> None:
        now = time.monotonic()
        self._asks.append((now, visitor))
        self._counts[visitor] += 1
        while self._asks[0][0] < now - SECONDS:
            _, earlier = self._asks.popleft()
            self._counts[earlier] -= 1
            if not self._counts[earlier]:
                del self._counts[earlier]

    def count(self, visitor: str) -> int:
        return self._counts[visitor]
