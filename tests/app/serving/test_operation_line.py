import asyncio
from collections import Counter

import pytest

from core.serving import operation_line
from core.serving.operation_line import OperationLine
from tests.app import event_loop


class Asked:
    """Asks for operations, which begin and go on until the test lets them end."""

    def __init__(self) -> None:
        self.line = OperationLine()
        self.begun: list[str] = []
        self.gave_way: list[str] = []
        self.may_end = asyncio.Event()
        self.tasks: list[asyncio.Task] = []

    async def ask(self, visitor: str, tab: str = "", age: float = 0.0) -> asyncio.Task:
        tab = tab or f"a tab of its own {len(self.tasks)}"
        self.tasks.append(task := asyncio.create_task(self._ask(visitor, tab, age)))
        await asyncio.sleep(0)
        return task

    async def end(self) -> None:
        self.may_end.set()
        async with asyncio.timeout(5):
            await asyncio.gather(*self.tasks, return_exceptions=True)

    async def _ask(self, visitor: str, tab: str, age: float) -> None:
        async with self.line.turn(visitor, tab, age) as is_due:
            (self.begun if is_due else self.gave_way).append(visitor)
            if is_due:
                await self.may_end.wait()


def test_visitors_take_turns_however_many_operations_one_asks_for():
    async def order() -> list[str]:
        asked = Asked()
        for visitor in "aaaaabbc":
            await asked.ask(visitor)
        assert asked.begun == ["a"]
        await asked.end()
        return asked.begun

    assert event_loop.run(order()) == list("aabcabaa")


def test_who_has_most_in_a_full_line_gives_way(monkeypatch):
    monkeypatch.setattr(operation_line, "MOST_WAITING", 6)

    async def places() -> tuple[Counter[str], Counter[str]]:
        asked = Asked()
        for visitor in "aaaaaaaaabbbbb":
            await asked.ask(visitor)
        await asked.ask("c")
        await asyncio.sleep(0)
        before = Counter(asked.gave_way)
        await asked.end()
        return before, Counter(asked.begun)

    gave_way, begun = event_loop.run(places())
    assert begun == {"a": 4, "b": 2, "c": 1} or begun == {"a": 3, "b": 3, "c": 1}
    assert gave_way.total() + begun.total() == 15


NEW = [(f"new {i}", 5.0) for i in range(21)]
KEPT = [(f"old {i % 10}", 9_000.0) for i in range(40)]


@pytest.mark.parametrize(
    ("before", "age", "after"), [(NEW[:20], 900.0, NEW[20:]), (KEPT, 5.0, KEPT)]
)
def test_neither_new_cookies_nor_kept_ones_keep_the_line(
    before, age, after, monkeypatch
):
    monkeypatch.setattr(operation_line, "MOST_WAITING", 6)

    async def begun() -> list[str]:
        asked = Asked()
        for visitor, its_age in (*before, ("a student", age), *after):
            await asked.ask(visitor, age=its_age)
        await asked.end()
        return asked.begun

    assert "a student" in event_loop.run(begun())


def test_a_tab_has_few_places():
    async def places() -> tuple[int, int]:
        asked = Asked()
        for _ in range(operation_line.MOST_OF_TAB + 3):
            await asked.ask("a", "tab")
        await asked.end()
        return len(asked.begun), len(asked.gave_way)

    assert event_loop.run(places()) == (operation_line.MOST_OF_TAB, 3)


def test_a_session_that_ends_hands_its_place_on():
    async def begun() -> list[str]:
        asked = Asked()
        first, second, _ = [await asked.ask(visitor) for visitor in "abc"]
        first.cancel()
        second.cancel()  # is next, and hasn't left yet as the first does
        await asked.end()
        return asked.begun

    assert event_loop.run(begun()) == ["a", "c"]
