import pytest

from core.serving import tab_weights
from core.serving.tab_weights import PER_BYTE, Tab, Tabs, too_heavy


@pytest.fixture(autouse=True)
def weighed_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tab_weights, "GROWN_BYTES", 0)


class Room:
    """The tabs that are still open, and what they hold."""

    def __init__(self) -> None:
        self.tabs = Tabs()
        self.open = dict[str, Tab]()
        self.sessions = dict[str, Tab]()  # of connections that have ended

    def enter(self, name: str, size: int, address: str = "6.6.6.6") -> None:
        tab = self.open[name] = Tab(lambda: self.leave(name))
        tab.address = address
        tab.session, tab.close = lambda: self, lambda: self.sessions.pop(name)
        self.tabs.enter(tab)
        self.say(name, size)

    def say(self, name: str, size: int) -> None:
        self.open[name].hold(PER_BYTE * size)
        self.tabs.grow(1)

    def leave(self, name: str) -> None:
        self.sessions[name] = self.open.pop(name)
        self.tabs.leave(self.sessions[name])

    def fill(self, address: str) -> None:
        for i in range(100):
            self.enter(f"{address} {i}", 900_000, address)

    def size(self) -> int:
        return sum(
            each.weight() for each in [*self.open.values(), *self.sessions.values()]
        )


def test_a_class_behind_one_address_has_three_scripts_a_person():
    room = Room()
    for i in range(300):
        room.enter(f"{i}", 5_000)
        room.say(f"{i}", 200_000)
        room.say(f"{i}", 10)
    assert len(room.open) == 300


def test_what_the_tabs_of_an_address_hold_has_a_limit():
    """500 tabs of a program fill no memory, and those that were first stay."""
    room = Room()
    for i in range(500):
        room.enter(f"{i}", 900_000)
    assert 190_000_000 < room.size() < 220_000_000
    assert [*room.open] == [f"{i}" for i in range(len(room.open))]


def test_a_session_weighs_after_its_tab_was_closed():
    room = Room()
    room.enter("open", 200_000)
    for i in range(500):
        room.enter(f"{i}", 900_000)
        room.leave(f"{i}")
    assert 190_000_000 < room.size() < 220_000_000
    assert [*room.open] == ["open"]


def test_a_session_that_is_gone_weighs_nothing():
    room = Room()
    for i in range(500):
        room.enter(f"{i}", 900_000)
        room.open[f"{i}"].session = tab_weights.nothing
        room.tabs.leave(room.open.pop(f"{i}"))
        room.enter(f"small {i}", 1_000)
    assert len(room.open) == 500


def test_a_session_that_goes_on_is_as_heavy_as_before():
    room = Room()
    room.enter("first", 900_000)
    first = room.open["first"]
    room.leave("first")
    room.enter("again", 10)
    room.tabs.go_on(first, room.open["again"])
    assert room.open["again"].weight() == PER_BYTE * 900_000
    assert first.weight() == 0


def test_what_waits_weighs_until_it_has_been_read(monkeypatch):
    monkeypatch.setattr(tab_weights, "ADDRESS_BYTES", 1_000)
    monkeypatch.setattr(tab_weights, "FREE_BYTES", 0)
    tabs, waiting = [Tab(), Tab()], 600
    for tab in tabs:
        tab.unread.append(lambda: waiting)
    assert too_heavy(tabs) == tabs[1:]
    waiting = 400
    assert too_heavy(tabs) == []


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
    assert room.size() < 330_000_000
    for i in range(50):
        room.enter(f"student {i}", 200_000, "10.0.0.1")
        room.enter(f"visitor {i}", 200_000, f"10.0.1.{i}")
    others = [name for name in room.open if not name.startswith("6.6.6")]
    assert len(others) == 100
    assert room.size() < 350_000_000
