"""How fast browsers may send messages."""

import asyncio
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from core.serving.request_source import network

# Messages per second, and how many may come at once. A page sends a few per second: one
# for each click, and one whenever a part of the page looks for news.
OF_A_TAB, TAB_AT_ONCE = 20.0, 60.0
# A class behind one address has hundreds of tabs.
OF_AN_ADDRESS, ADDRESS_AT_ONCE = 400.0, 1_000.0
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
