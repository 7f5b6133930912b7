"""The downloads that visitors behind a network address wait for."""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from core.serving.recent_asks import RecentAsks

MOST_OF_TAB, MOST_WAITING = 4, 40  # that wait at once
Place = asyncio.Future[bool]  # whether a turn has come


class OperationLine:
    """Lets operations work one at a time; visitors take turns.

    When the line is full, the newest operation of the visitor who has most waiting
    gives way; among equals, of the one who has asked most often lately, and then of the
    newest cookie. So nobody can fill the line and keep it: a program has any number of
    new cookies, but those that it has kept soon have asked more often than people.
    """

    def __init__(self) -> None:
        # By visitor, in the order in which they have the next turns
        self._waiting: dict[str, deque[Place]] = {}
        self._ages: dict[str, float] = {}
        self._asks = RecentAsks()
        self._of_tab = Counter[str]()
        self._working: Place | None = None

    @asynccontextmanager
    async def turn(
        self, visitor: str, tab: str, age: float = 0.0
    ) -> AsyncIterator[bool]:
        """Wait for a turn; gives whether it has come, or the operation gives way.

        `age` is how many seconds ago the visitor's cookie was given.
        """
        if self._of_tab[tab] >= MOST_OF_TAB:
            yield False
            return
        place = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(visitor, deque()).append(place)
        self._ages[visitor] = age
        self._asks.add(visitor)
        self._of_tab[tab] += 1
        self._begin_next()
        self._fit()
        try:
            yield await place
        finally:
            self._of_tab -= Counter([tab])  # drops tabs at 0
            if place in self._waiting.get(visitor, ()):
                self._waiting[visitor].remove(place)
                self._drop_empty(visitor)
            if place is self._working:
                self._working = None
                self._begin_next()

    def _begin_next(self) -> None:
        if self._working or not self._waiting:
            return
        visitor, places = next(iter(self._waiting.items()))
        self._working = places.popleft()
        settle(self._working, True)
        # Now behind the other visitors
        self._waiting[visitor] = self._waiting.pop(visitor)
        self._drop_empty(visitor)

    def _fit(self) -> None:
        waiting = self._waiting
        if sum(map(len, waiting.values())) > MOST_WAITING:
            most = max(
                reversed(waiting),
                key=lambda who: (
                    len(waiting[who]),
                    self._asks.count(who),
                    -self._ages[who],
                ),
            )
            settle(waiting[most].pop(), False)
            self._drop_empty(most)

    def _drop_empty(self, visitor: str) -> None:
        if not self._waiting[visitor]:
            del self._waiting[visitor], self._ages[visitor]


def settle(place: Place, has_turn: bool) -> None:
    if not place.cancelled():  # with its session, a moment ago
        place.set_result(has_turn)
