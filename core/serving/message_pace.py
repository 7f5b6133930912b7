"""How fast browsers may send messages, ask for files, and open websockets."""

import asyncio
import math
import time
from contextlib import suppress

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from core.serving.request_source import network
from core.serving.tab_weights import TAB, Tab

# Messages per second, and how many may come at once. A page sends a few per second: one
# for each click, and one whenever a part of the page looks for news.
OF_A_TAB, TAB_AT_ONCE = 20.0, 60.0
# A class behind one address has hundreds of tabs.
OF_AN_ADDRESS, ADDRESS_AT_ONCE = 400.0, 1_000.0
MESSAGE_BYTES = 20_000  # that count as another message: most have 1,000 in all
# Requests of an address per second, and at once. A first visit asks for 60 files, and
# five hundred people may come from one address, within a minute or two.
REQUESTS, REQUESTS_AT_ONCE = 600.0, 6_000.0
# Websockets that an address opens per second, and at once. If the server starts anew,
# all tabs open one again.
OPENED, OPENED_AT_ONCE = 60.0, 1_200.0
MOST_SECONDS = 10.0  # that a request waits, before more are refused
TOO_MANY = "Too many requests have come from your network. Try again in a minute."
MOST_ADDRESSES = 1_000  # in memory, before those that are quiet now are dropped


class Pace:
    """Lets so many things happen per second, and after a pause, so many at once."""

    def __init__(self, per_second: float, at_once: float) -> None:
        self._gap, self._credit = 1 / per_second, at_once / per_second
        self._next = -math.inf  # when the next thing is due, if all came evenly spaced
        self.turn = asyncio.Lock()  # of those that wait for the next turn of the loop

    def delay(self, now: float, count: float = 1) -> float:
        """Count one more thing, or more; returns in how many seconds it may happen."""
        self._next = max(self._next, now - self._credit) + count * self._gap
        return max(0.0, self._next - now)

    def is_quiet(self, now: float) -> bool:
        """Whether as many things as at first may happen at once."""
        return self._next <= now - self._credit


class AddressPaces:
    """The pace of each address."""

    def __init__(self, per_second: float, at_once: float) -> None:
        self._settings = per_second, at_once
        self._paces: dict[str, Pace] = {}

    def of(self, address: str, now: float) -> Pace:
        if address not in self._paces:
            if len(self._paces) >= MOST_ADDRESSES:
                self._paces = {
                    name: pace
                    for name, pace in self._paces.items()
                    if not pace.is_quiet(now)
                }
            self._paces[address] = Pace(*self._settings)
        return self._paces[address]


class MessagePace:
    """ASGI middleware: messages of a tab that come too fast wait in its connection.

    So do those of all tabs of an address. Nothing is refused, and nothing is lost but
    what a closed tab has sent: a browser's later messages wait for the earlier ones.
    Long messages count more.

    Other requests of an address that come too fast wait, too, and so do websockets to
    be opened. If as many wait as may come in MOST_SECONDS, which takes as many
    connections, further ones are refused. And in each turn of the event loop, only one
    of an address begins: if hundreds come at once, the requests of others don't wait
    for all of them.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._messages = AddressPaces(OF_AN_ADDRESS, ADDRESS_AT_ONCE)
        self._requests = {
            "http": AddressPaces(REQUESTS, REQUESTS_AT_ONCE),
            "websocket": AddressPaces(OPENED, OPENED_AT_ONCE),
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        address = network(scope["client"][0]) if scope.get("client") else ""
        if requests := self._requests.get(scope["type"]):
            now = time.monotonic()
            pace = requests.of(address, now)
            if pace.delay(now, 0) > MOST_SECONDS:
                refusal = PlainTextResponse(TOO_MANY, 429, {"Connection": "close"})
                return await refusal(scope, receive, send)
            if delay := pace.delay(now):
                await asyncio.sleep(delay)
            async with pace.turn:
                await asyncio.sleep(0)
        if scope["type"] == "websocket":
            receive = self._in_time(address, scope, receive)
        await self.app(scope, receive, send)

    def _in_time(self, address: str, scope: Scope, receive: Receive) -> Receive:
        tab = Pace(OF_A_TAB, TAB_AT_ONCE)

        async def hear() -> Message:
            while (message := await receive())["type"] == "websocket.receive":
                content = message.get("bytes") or message.get("text") or ""
                now, count = time.monotonic(), 1 + len(content) / MESSAGE_BYTES
                paces = tab, self._messages.of(address, now)
                delay = max(pace.delay(now, count) for pace in paces)
                if not delay or await is_there(scope, delay):
                    break
            return message

        return hear


async def is_there(scope: Scope, seconds: float) -> bool:
    """Wait; returns whether the tab's connection is still open then.

    Without this, a browser that opens and closes tabs could let any number of messages
    wait, which the server would keep in memory.
    """
    tab = scope.get("state", {}).get(TAB, Tab())
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await tab.is_gone.wait()
    return not tab.is_gone.is_set()
