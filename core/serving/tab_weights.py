"""How much memory browsers' tabs may take, and which of them have to give way."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable

# Bytes of all tabs of an address, and of all tabs, beside the pages themselves. A
# hundred people can check the longest script in three tabs each.
ADDRESS_BYTES, ALL_BYTES = 200_000_000, 300_000_000
FREE_BYTES = 200_000  # of each tab that don't count, so that small ones never end
# What a byte of a message takes: what has come, the widgets' values, and what a page
# makes of them. A character that takes more bytes in Python counts as these.
PER_BYTE = 3
GROWN_BYTES = 2_000_000  # after which the tabs are weighed again
TAB = "tab"  # in a connection's scope


def nothing() -> None: ...


class Tab:
    """What the server holds for a browser's tab: a connection, a session, or both.

    `unread` has functions that count the bytes which wait until the browser reads them.
    """

    def __init__(
        self, abort: Callable[[], None] = nothing, *unread: Callable[[], int]
    ) -> None:
        self.address = self.visitor = ""
        self.age = 0.0  # seconds from the visitor's cookie to this connection
        self.largest = 0  # bytes that the largest message takes, and what came with it
        self.abort, self.unread = abort, list(unread)
        self.is_gone = asyncio.Event()  # set when the connection has ended
        self.close = nothing  # ends the session
        self.session: Callable[[], object] = nothing  # None once it is gone

    def hold(self, size: int) -> None:
        self.largest = max(self.largest, size)

    def weight(self) -> int:
        return self.largest + sum(count() for count in self.unread)


class Tabs:
    """Ends the heaviest tabs when all of them become too much.

    If those of an address, or of all, are too much together, the heaviest address has
    to give way: first the sessions that have lost their connection, and then the
    heaviest connections; among equals, the newest. So nobody can fill the room and keep
    it: whoever comes later stays, unless that one is the heaviest.

    A tab whose connection is gone weighs as long as its session takes memory. If the
    session goes on in another connection, its weight does, too.
    """

    def __init__(self) -> None:
        self._tabs: dict[Tab, None] = {}  # the oldest first
        self._grown = 0

    def enter(self, tab: Tab) -> None:
        self._tabs[tab] = None

    def leave(self, tab: Tab) -> None:
        """Count only the session from now on, since the connection has ended."""
        tab.is_gone.set()
        tab.abort = nothing
        tab.unread.clear()
        if tab.session() is None:
            self._tabs.pop(tab, None)

    def go_on(self, before: Tab, tab: Tab) -> None:
        """A session goes on in the tab's connection."""
        tab.hold(before.largest)
        before.largest, before.session, before.close = 0, nothing, nothing
        if before.is_gone.is_set():
            self._tabs.pop(before, None)

    def grow(self, size: int) -> None:
        """Note that so many bytes have come, or wait; weigh all tabs after many."""
        self._grown += size
        if self._grown < GROWN_BYTES:
            return
        self._grown = 0
        there = [tab for tab in self._tabs if not tab.is_gone.is_set() or tab.session()]
        self._tabs = dict.fromkeys(there)
        for tab in too_heavy(there):
            if tab.is_gone.is_set():
                del self._tabs[tab]
                tab.close()
            else:
                tab.abort()


def too_heavy(tabs: Iterable[Tab]) -> list[Tab]:
    """Those that have to end, so that the others fit: see Tabs."""
    of = defaultdict[str, list[tuple[bool, int, Tab]]](list)
    sums = Counter[str]()
    for tab in tabs:
        weight = max(0, tab.weight() - FREE_BYTES)
        of[tab.address].append((tab.is_gone.is_set(), weight, tab))
        sums[tab.address] += weight
    total, ends = sums.total(), list[Tab]()
    while total > ALL_BYTES or max(sums.values(), default=0) > ADDRESS_BYTES:
        heaviest = max(reversed(sums), key=sums.__getitem__)
        if not ends or ends[-1].address != heaviest:
            of[heaviest].sort(key=lambda one: one[:2])
        _, weight, tab = of[heaviest].pop()
        sums[heaviest] -= weight
        total -= weight
        ends.append(tab)
    return ends
