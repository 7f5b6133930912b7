"""A person who opens Train, starts a run, watches it and leaves, and their habits."""

import asyncio
import random
import re
import time
from urllib.parse import parse_qs

from tools.load.record import Record, Turn
from tools.load.tab import Browser, Tab, Trouble

TINY = "Train?task=sprites&epochs=2"  # about a second on one core
START, JOIN = "start_training", "join_class"
IN_CLASS = "You are **"
SERVED = "are classified correctly"
PROGRESS = re.compile(r"Epoch \d+ of \d+ · step")
PLACE = re.compile(r"Number \d+ in the queue")

# One in ten each; the others start, watch and leave.
HABITS = {
    1: "presses twice",
    3: "reloads",
    5: "leaves",
    7: "opens a second tab",
    9: "loses the connection",
}


def run_in(address: str) -> str:
    """The run that an address names; empty if none."""
    return parse_qs(address.rpartition("?")[2]).get("run", [""])[0]


class Person:
    """Somebody with a browser of their own, who may come more than once."""

    def __init__(self, number: int, url: str, patience: float, door: str = "") -> None:
        """`patience` is for how many seconds they wait for their run to end.

        By the address of the `door`, where there is one, they join a class first.
        """
        self.number, self._patience, self._door = number, patience, door
        self.habit = HABITS.get(number % 10, "waits")
        self._browser = Browser(url)
        self._random = random.Random(number)
        self._tabs: list[Tab] = []

    async def visit(self, record: Record, others_left: asyncio.Event) -> None:
        """Train once. Who leaves in the middle comes again when the others have left.

        What goes wrong is in the record.
        """
        try:
            if self._door:
                await self._join(record)
            await self._train(record, others_left)
            if self._door:
                await self._look_at_the_class(record)
            for tab in self._tabs:
                tab.check()
        except (Trouble, ValueError) as trouble:  # or a figure that is none
            record.errors.append(f"{self.number} ({self.habit}): {trouble}")
        finally:
            await self._leave()

    async def _join(self, record: Record) -> None:
        """Once; whoever comes again is in."""
        tab = await self._open(self._door, record)
        if tab.can_press(JOIN):
            await tab.press(JOIN)
        await tab.until(lambda: IN_CLASS in " ".join(tab.texts()), "name", 30)
        await self._leave()

    async def _look_at_the_class(self, record: Record) -> None:
        """For as long as it takes to find oneself."""
        tab = await self._open("Class", record)
        await tab.until(lambda: IN_CLASS in " ".join(tab.texts()), "name", 30)
        await self._think(5.0)

    async def _train(self, record: Record, others_left: asyncio.Event) -> None:
        tab = await self._open(TINY, record)
        await tab.until(lambda: tab.can_press(START), "button to start with", 90)
        await self._think(1.0)
        before, pressed = run_in(tab.query), time.monotonic()
        await tab.press(START, times=2 if self.habit == "presses twice" else 1)
        turn = Turn(self.number, pressed, time.monotonic())
        record.turns.append(turn)
        run = run_in(tab.query)
        if run in ("", before):
            raise Trouble(f"The address does not name the new run. {tab}")
        if self.habit == "leaves":
            await self._leave()
            await others_left.wait()
            await self._think(5.0)  # not all in the same instant
            tab = await self._open(f"Train?run={run}", record)
        if self.habit == "opens a second tab":
            second = await self._open("Train", record)
            if run_in(second.query) != run:
                raise Trouble(f"The second tab shows another run. {second}")
        if self.habit == "loses the connection":
            await self._think(1.0)
            await tab.lose_connection()
        await self._watch(tab, turn)
        await self._think(1.0)

    async def _watch(self, tab: Tab, turn: Turn) -> None:
        """Until the run has ended, and the page says how good the model is."""

        def ended() -> object:
            texts = tab.texts()
            turn.waited = tab.as_of(PLACE) or turn.waited
            if any(map(PROGRESS.search, texts)):
                turn.looks.append(time.monotonic())
            # The figures are drawn after the sentence.
            return any(SERVED in text for text in texts) and tab.metric("Samples/s")

        deadline = time.monotonic() + self._patience
        if self.habit == "reloads":
            while not ended() and time.monotonic() < deadline:
                await self._think(5.0)
                await tab.reload()
                turn.looks.clear()  # the pause was their own
        await tab.until(ended, "end of the run", deadline - time.monotonic())
        turn.served = time.monotonic()
        turn.samples_per_second = float(tab.metric("Samples/s").replace(",", ""))

    async def _open(self, address: str, record: Record) -> Tab:
        tab = Tab(self._browser, record)
        self._tabs.append(tab)
        await tab.open(address)
        return tab

    async def _leave(self) -> None:
        tabs, self._tabs = self._tabs, []
        for tab in tabs:
            await tab.close()

    async def _think(self, seconds: float) -> None:
        """About that long."""
        await asyncio.sleep(seconds * self._random.uniform(0.5, 1.5))
