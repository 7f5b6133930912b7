import asyncio
import time
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from core.serving import message_pace
from core.serving.message_pace import MessagePace, Pace
from tests.app import event_loop

MESSAGE = {"type": "websocket.receive", "bytes": b"x"}


def test_what_comes_evenly_never_waits():
    pace = Pace(per_second=10, at_once=5)
    assert [pace.delay(100 + i / 10) for i in range(50)] == [0.0] * 50


def test_what_comes_at_once_waits_after_a_while_and_the_longer_the_more_it_is():
    pace = Pace(per_second=10, at_once=5)
    delays = [pace.delay(100.0) for _ in range(8)]
    assert delays == pytest.approx([0, 0, 0, 0, 0, 0.1, 0.2, 0.3])
    assert pace.delay(200.0) == 0
    assert not pace.is_quiet(200.0)
    assert pace.is_quiet(201.0)


class Tabs:
    """Tabs whose messages are all there already, and how many the app has taken."""

    def __init__(self) -> None:
        self.heard = dict[str, int]()
        self.app = MessagePace(self._take)

    async def _take(self, scope: Scope, receive: Receive, _: Send) -> None:
        while True:
            await receive()
            self.heard[scope["name"]] = self.heard.get(scope["name"], 0) + 1

    async def open(self, address: str, name: str, seconds: float) -> None:
        scope = {"type": "websocket", "client": (address, 1), "name": name}

        async def receive() -> dict[str, Any]:
            await asyncio.sleep(0)
            return MESSAGE

        async def send(_: Any) -> None: ...

        try:
            async with asyncio.timeout(seconds):
                await self.app(scope, receive, send)
        except TimeoutError:
            pass


def test_a_tab_and_all_tabs_of_an_address_send_only_so_fast(monkeypatch):
    for name, value in {
        **{"OF_A_TAB": 20.0, "TAB_AT_ONCE": 10.0},
        **{"OF_AN_ADDRESS": 40.0, "ADDRESS_AT_ONCE": 30.0},
    }.items():
        monkeypatch.setattr(message_pace, name, value)
    tabs = Tabs()

    async def flood() -> float:
        began = time.monotonic()
        many = (tabs.open("10.0.0.1", f"{i}", 0.5) for i in range(6))
        await asyncio.gather(tabs.open("10.0.0.2", "alone", 0.5), *many)
        return time.monotonic() - began

    seconds = event_loop.run(flood())
    alone = tabs.heard.pop("alone")
    assert 10 <= alone <= 11 + 20 * seconds
    assert 30 <= sum(tabs.heard.values()) <= 31 + 40 * seconds


def test_addresses_that_are_quiet_are_forgotten(monkeypatch):
    monkeypatch.setattr(message_pace, "MOST_ADDRESSES", 2)
    pace = MessagePace(Tabs().app)
    for now, address in enumerate(("a", "b", "c")):
        pace._of_address(address, 1000.0 * (now + 1)).delay(1000.0 * (now + 1))
    assert [*pace._addresses] == ["c"]
