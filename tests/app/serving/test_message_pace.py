import asyncio
import time
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from core.serving import message_pace
from core.serving.message_pace import MessagePace, Pace, Weights
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


class Room:
    """What the connections weigh that are still open."""

    def __init__(self) -> None:
        self.weights = Weights[str]()
        self.open = dict[str, int]()

    def enter(self, name: str, size: int, address: str = "6.6.6.6") -> None:
        self.open[name] = size
        for ended in self.weights.put(name, address, size):
            del self.open[ended]

    def fill(self, address: str) -> None:
        for i in range(100):
            self.enter(f"{address} {i}", 900_000, address)


def test_a_class_behind_one_address_has_three_scripts_a_person():
    room = Room()
    for i in range(300):
        for size in (5_000, 200_000, 10):
            room.enter(f"{i}", size)
    assert len(room.open) == 300


def test_what_the_tabs_of_an_address_hold_has_a_limit():
    """500 tabs of a program fill no memory, and those that were first stay."""
    room = Room()
    for i in range(500):
        room.enter(f"{i}", 900_000)
    assert 60_000_000 < sum(room.open.values()) < 75_000_000
    assert [*room.open] == [f"{i}" for i in range(len(room.open))]


def test_whoever_fills_the_room_makes_room_for_others():
    room = Room()
    room.fill("6.6.6.6")
    for i in range(100):
        room.enter(f"small {i}", 20_000)
        room.enter(f"script {i}", 200_000)
    others = [name for name in room.open if not name.startswith("6.6.6.6")]
    assert len(others) == 200
    room.enter("heavier than any", 1_000_000)
    assert "heavier than any" not in room.open


def test_addresses_that_fill_the_room_make_room_for_others():
    room = Room()
    for i in range(9):
        room.fill(f"6.6.6.{i}")
    assert sum(room.open.values()) < 150_000_000
    for i in range(50):
        room.enter(f"student {i}", 200_000, "10.0.0.1")
        room.enter(f"visitor {i}", 200_000, f"10.0.1.{i}")
    others = [name for name in room.open if not name.startswith("6.6.6")]
    assert len(others) == 100
    assert sum(room.open.values()) < 150_000_000


def test_a_connection_that_has_ended_weighs_nothing():
    room = Room()
    for i in range(500):
        room.enter(f"{i}", 900_000)
        room.weights.drop(f"{i}")
    assert len(room.open) == 500


def test_addresses_that_are_quiet_are_forgotten(monkeypatch):
    monkeypatch.setattr(message_pace, "MOST_ADDRESSES", 2)
    pace = MessagePace(Tabs().app)
    for now, address in enumerate(("a", "b", "c")):
        pace._of_address(address, 1000.0 * (now + 1)).delay(1000.0 * (now + 1))
    assert [*pace._addresses] == ["c"]
