import asyncio
import time
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from core.serving import message_pace
from core.serving.message_pace import MESSAGE_BYTES, AddressPaces, MessagePace, Pace
from core.serving.tab_weights import TAB, Tab, Tabs
from tests.app import event_loop


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


class Room:
    """Tabs whose messages are all there already, and how many the app has taken."""

    def __init__(self, size: int = 1) -> None:
        self.heard = dict[str, int]()
        self.message = {"type": "websocket.receive", "bytes": bytes(size)}
        self.app = MessagePace(self._take)

    async def _take(self, scope: Scope, receive: Receive, _: Send) -> None:
        while True:
            await receive()
            self.heard[scope["name"]] = self.heard.get(scope["name"], 0) + 1

    async def open(self, address: str, name: str, seconds: float) -> None:
        scope = {"type": "websocket", "client": (address, 1), "name": name}

        async def receive() -> dict[str, Any]:
            await asyncio.sleep(0)
            return self.message

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
    tabs = Room()

    async def flood() -> float:
        began = time.monotonic()
        many = (tabs.open("10.0.0.1", f"{i}", 0.5) for i in range(6))
        await asyncio.gather(tabs.open("10.0.0.2", "alone", 0.5), *many)
        return time.monotonic() - began

    seconds = event_loop.run(flood())
    alone = tabs.heard.pop("alone")
    assert 10 <= alone <= 11 + 20 * seconds
    assert 30 <= sum(tabs.heard.values()) <= 31 + 40 * seconds


def test_long_messages_count_more(monkeypatch):
    monkeypatch.setattr(message_pace, "TAB_AT_ONCE", 10.0)
    tabs = Room(size=3 * MESSAGE_BYTES)
    event_loop.run(tabs.open("10.0.0.1", "a", 0.01))
    assert tabs.heard == {"a": 2}


def test_what_a_tab_has_sent_does_not_wait_when_the_tab_is_closed(monkeypatch):
    monkeypatch.setattr(message_pace, "TAB_AT_ONCE", 1.5)
    monkeypatch.setattr(message_pace, "OF_A_TAB", 0.01)
    tab, heard = Tab(), []
    sent = [{"type": "websocket.receive", "bytes": b"a"}] * 3
    sent.append({"type": "websocket.disconnect"})

    async def receive() -> Any:
        return sent.pop(0)

    async def app(_scope: Scope, receive: Receive, _send: Send) -> None:
        while not heard or heard[-1] != "websocket.disconnect":
            heard.append((await receive())["type"])

    async def close() -> None:
        scope = {"type": "websocket", "state": {TAB: tab}}
        asyncio.get_running_loop().call_later(0.05, Tabs().leave, tab)
        async with asyncio.timeout(5):
            await MessagePace(app)(scope, receive, None)

    event_loop.run(close())
    assert heard == ["websocket.receive", "websocket.disconnect"]


DENIAL = "websocket.http.response"  # of the server: see ASGI


class Files:
    """Files or websockets that addresses ask for, and the statuses that come."""

    def __init__(self, kind: str = "http") -> None:
        self.kind = kind
        self.statuses = dict[str, list[int]]()
        self.app = MessagePace(self._answer)

    async def _answer(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200})

    async def ask(self, address: str) -> None:
        async def send(message: Any) -> None:
            if "status" in message:
                self.statuses.setdefault(address, []).append(message["status"])

        scope = {"type": self.kind, "client": (address, 1)}
        await self.app(scope | {"extensions": {DENIAL: {}}}, None, send)

    async def ask_at_once(self, address: str, count: int) -> float:
        """Seconds until all of them have come."""
        began = time.monotonic()
        await asyncio.gather(*(self.ask(address) for _ in range(count)))
        return time.monotonic() - began


@pytest.mark.parametrize(
    ("kind", "pace", "count"),
    [("http", "REQUESTS", 40 * 60), ("websocket", "OPENED", 1_000)],
)
def test_a_class_behind_one_address_loads_the_page_at_once(
    monkeypatch, kind, pace, count
):
    """Two tabs of each of five hundred people may open a websocket again."""
    monkeypatch.setattr(message_pace, pace, 1.0)
    files = Files(kind)
    event_loop.run(files.ask_at_once("10.0.0.1", count))
    assert files.statuses["10.0.0.1"] == [200] * count


@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_a_request_does_not_wait_for_all_those_of_another_address(kind):
    files = Files(kind)

    async def ask() -> int:
        many = asyncio.create_task(files.ask_at_once("10.0.0.1", 300))
        for _ in range(5):
            await asyncio.sleep(0)
        await files.ask("10.0.0.2")
        before = len(files.statuses["10.0.0.1"])
        await many
        return before

    assert event_loop.run(ask()) < 10


@pytest.mark.parametrize(
    ("kind", "pace"), [("http", "REQUESTS"), ("websocket", "OPENED")]
)
def test_requests_of_an_address_come_only_so_fast_and_not_without_end(
    monkeypatch, kind, pace
):
    monkeypatch.setattr(message_pace, pace, 100.0)
    monkeypatch.setattr(message_pace, f"{pace}_AT_ONCE", 20.0)
    monkeypatch.setattr(message_pace, "MOST_SECONDS", 0.3)
    files = Files(kind)

    async def flood() -> tuple[float, float]:
        many = asyncio.create_task(files.ask_at_once("10.0.0.1", 100))
        await asyncio.sleep(0)
        return await files.ask_at_once("10.0.0.2", 1), await many

    alone, many = event_loop.run(flood())
    assert alone < 0.2 < many
    assert files.statuses["10.0.0.2"] == [200]
    statuses = files.statuses["10.0.0.1"]
    assert 48 <= statuses.count(200) <= 55
    assert statuses.count(429) == 100 - statuses.count(200)


def test_addresses_that_are_quiet_are_forgotten(monkeypatch):
    monkeypatch.setattr(message_pace, "MOST_ADDRESSES", 2)
    paces = AddressPaces(1.0, 10.0)
    for now, address in enumerate(("a", "b", "c")):
        paces.of(address, 1000.0 * (now + 1)).delay(1000.0 * (now + 1))
    assert [*paces._paces] == ["c"]
