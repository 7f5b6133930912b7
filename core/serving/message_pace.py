"""How fast browsers may send messages, and how much memory these may take."""

import asyncio
import time
from collections import Counter

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from core.serving.request_source import network

# Messages per second, and how many may come at once. A page sends a few per second: one
# for each click, and one whenever a part of the page looks for news.
OF_A_TAB, TAB_AT_ONCE = 20.0, 60.0
# A class behind one address has hundreds of tabs.
OF_AN_ADDRESS, ADDRESS_AT_ONCE = 400.0, 1_000.0
# Bytes of the largest messages of the open tabs: what their widgets hold, and so their
# sessions. A hundred people can check the longest script in three tabs each.
ADDRESS_BYTES, ALL_BYTES = 64_000_000, 256_000_000
LINGER_SECONDS = 150.0  # sessions stay for two minutes after their tabs are closed
TOO_BIG = 1009  # a websocket's status
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


class Weights:
    """Counts what the sessions of each address hold at most, in bytes."""

    def __init__(self) -> None:
        self._of: Counter[str] = Counter()

    def grow(self, address: str, more: int) -> bool:
        """Count more bytes; returns False if there is no room for them."""
        if self._of[address] + more > ADDRESS_BYTES:
            return False
        if self._of.total() + more > ALL_BYTES:
            return False
        self._of[address] += more
        return True

    def shrink(self, address: str, less: int) -> None:
        self._of[address] -= less
        if not self._of[address]:
            del self._of[address]


class MessagePace:
    """ASGI middleware: messages of a tab that come too fast wait in its connection.

    So do those of all tabs of an address. Nothing is refused or lost: a browser's
    later messages wait for the earlier ones. But if the sessions of an address, or all
    of them, hold too much, the tab that would add to it is cut off.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._addresses: dict[str, Pace] = {}
        self._weights = Weights()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            return await self.app(scope, receive, send)
        tab = Pace(OF_A_TAB, TAB_AT_ONCE)
        address = network(scope["client"][0]) if scope.get("client") else ""

        largest = 0

        async def hear() -> Message:
            nonlocal largest
            message = await receive()
            if message["type"] == "websocket.receive":
                size = len(message.get("bytes") or message.get("text") or b"")
                if size > largest:
                    if not self._weights.grow(address, size - largest):
                        return {"type": "websocket.disconnect", "code": TOO_BIG}
                    largest = size
                now = time.monotonic()
                paces = tab, self._of_address(address, now)
                if delay := max(pace.delay(now) for pace in paces):
                    await asyncio.sleep(delay)
            return message

        try:
            await self.app(scope, hear, send)
        finally:
            loop = asyncio.get_running_loop()
            loop.call_later(LINGER_SECONDS, self._weights.shrink, address, largest)

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
