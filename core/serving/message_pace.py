"""How fast browsers may send messages, and how much memory these may take."""

import asyncio
import time
from collections import Counter
from typing import Generic, TypeVar

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from core.serving.request_source import network

Connection = TypeVar("Connection")

# Messages per second, and how many may come at once. A page sends a few per second: one
# for each click, and one whenever a part of the page looks for news.
OF_A_TAB, TAB_AT_ONCE = 20.0, 60.0
# A class behind one address has hundreds of tabs.
OF_AN_ADDRESS, ADDRESS_AT_ONCE = 400.0, 1_000.0
# Bytes of the largest message of each connection: what a tab's widgets hold, and so its
# session, which takes almost three times as much. Messages of up to FREE_BYTES count
# nothing. A hundred people can check the longest script in three tabs each.
FREE_BYTES = 64_000
ADDRESS_BYTES, ALL_BYTES = 64_000_000, 128_000_000
MOST_ADDRESSES = 1_000  # in memory, before those that are quiet now are dropped


class Pace:
    """Lets so many things happen per second, and after a pause, so many at once."""

    def __init__(self, per_second: float, at_once: float) -> None:
        self._gap, self._credit = 1 / per_second, at_once / per_second
        self._next = 0.0  # when the next thing is due, if all came evenly spaced

    def delay(self, now: float) -> float:
        """Count one more thing; returns in how many seconds it may happen."""
        self._next = max(self._next, now - self._credit) + self._gap
        return max(0.0, self._next - now)

    def is_quiet(self, now: float) -> bool:
        """Whether as many things as at first may happen at once."""
        return self._next <= now - self._credit


class Weights(Generic[Connection]):
    """Which connections have to end, so that the largest messages fit into memory.

    If those of an address, or of all, are too much together, the heaviest connection of
    the heaviest address has to end; among equals, the newest. So nobody can fill the
    room and keep it: whoever comes later stays, unless that one is the heaviest. Small
    messages weigh nothing, so they end no connection.

    Only open connections weigh. The sessions of closed ones stay for two minutes, but
    Streamlit keeps at most the 128 that were closed last, so they give way by
    themselves. `streamlit_internals.weigh_messages` has the others collected soon. It
    also sees to it that a session which goes on in a new connection keeps its weight.
    """

    def __init__(self) -> None:
        self._weights: dict[Connection, tuple[str, int]] = {}  # the oldest first
        self._of: Counter[str] = Counter()

    def put(self, connection: Connection, address: str, size: int) -> list[Connection]:
        """Weigh a connection by its largest message; returns those that have to end."""
        address, before = self._weights.get(connection, (address, 0))
        weight = max(0, size - FREE_BYTES)
        self._weights[connection] = address, weight
        self._of[address] += weight - before
        ends = []
        while self._of[address] > ADDRESS_BYTES:
            ends.append(self._take_heaviest(address))
        while self._of.total() > ALL_BYTES:
            heaviest = max(reversed(self._of), key=self._of.__getitem__)
            ends.append(self._take_heaviest(heaviest))
        return ends

    def drop(self, connection: Connection) -> None:
        address, weight = self._weights.pop(connection, ("", 0))
        self._of[address] -= weight
        if not self._of[address]:
            del self._of[address]

    def _take_heaviest(self, address: str) -> Connection:
        newest_first = reversed(self._weights.items())
        weights = {key: size for key, (of, size) in newest_first if of == address}
        heaviest = max(weights, key=weights.__getitem__)
        self.drop(heaviest)
        return heaviest


class MessagePace:
    """ASGI middleware: messages of a tab that come too fast wait in its connection.

    So do those of all tabs of an address. Nothing is refused or lost: a browser's
    later messages wait for the earlier ones.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._addresses: dict[str, Pace] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            return await self.app(scope, receive, send)
        tab = Pace(OF_A_TAB, TAB_AT_ONCE)
        address = network(scope["client"][0]) if scope.get("client") else ""

        async def hear() -> Message:
            message = await receive()
            if message["type"] == "websocket.receive":
                now = time.monotonic()
                paces = tab, self._of_address(address, now)
                if delay := max(pace.delay(now) for pace in paces):
                    await asyncio.sleep(delay)
            return message

        await self.app(scope, hear, send)

    def _of_address(self, address: str, now: float) -> Pace:
        if address not in self._addresses:
            if len(self._addresses) >= MOST_ADDRESSES:
                self._addresses = {
                    name: pace
                    for name, pace in self._addresses.items()
                    if not pace.is_quiet(now)
                }
            self._addresses[address] = Pace(OF_AN_ADDRESS, ADDRESS_AT_ONCE)
        return self._addresses[address]
