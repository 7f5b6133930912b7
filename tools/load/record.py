"""What is measured in one round: what people waited for, memory, and CPU."""

import asyncio
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import quantiles
from typing import Self

import psutil

EVERY_SECONDS = 0.1


@dataclass
class Turn:
    """One run of one person; times are seconds of one clock."""

    person: int
    pressed: float  # when the button was
    taken: float  # when the page had answered
    waited: float | None = None  # when a page was asked for that still named a place
    looks: list[float] = field(default_factory=list)  # when a page showed its progress
    served: float | None = None  # when the page told how good the model is
    samples_per_second: float = 0.0  # in the last epoch, as the page said


@dataclass
class Record:
    """Times are seconds that people waited, errors are sentences."""

    page: list[float] = field(default_factory=list)  # from the address to the page
    click: list[float] = field(default_factory=list)  # from the press to the page
    look: list[float] = field(default_factory=list)  # from the timer to the page
    browser_page: list[float] = field(default_factory=list)  # the same, by witnesses
    browser_click: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)

    @property
    def served(self) -> list[Turn]:
        """Those who were told how good their model is."""
        return [turn for turn in self.turns if turn.served is not None]

    @property
    def between_looks(self) -> list[float]:
        """Seconds from one look at a run that goes on to the next."""
        return [b - a for turn in self.turns for a, b in pairwise(turn.looks)]

    @property
    def samples_per_second(self) -> list[float]:
        return [
            each.samples_per_second for each in self.turns if each.samples_per_second
        ]


def overtaken(turns: Iterable[Turn], before: Iterable[Turn] = ()) -> list[str]:
    """Who still waited when somebody was served who came later, in sentences.

    Not where the other one's last turn, `before` this round, was longer ago: a fair
    queue may let them pass.
    """
    last = {turn.person: turn.served or 0.0 for turn in before}
    turns = list(turns)
    return [
        f"{first.person} still waited when {later.person}, who came later, was served"
        for first in turns
        for later in turns
        if first.taken < later.pressed
        and last.get(first.person, 0.0) <= last.get(later.person, 0.0)
        and first.waited is not None
        and later.served is not None
        and first.waited > later.served
    ]


def percentiles(seconds: list[float]) -> dict[str, float] | None:
    """p50, p95 and max; None of nothing."""
    if not seconds:
        return None
    cuts = quantiles(seconds, n=20, method="inclusive") if seconds[1:] else seconds * 19
    return {"p50": cuts[9], "p95": cuts[18], "max": max(seconds), "n": len(seconds)}


# Memory and CPU while people are there, and whether they themselves kept up


def cpu_seconds(processes: Iterable[psutil.Process]) -> float:
    """What these have used so far; those that have ended count for nothing."""
    used = 0.0
    for each in processes:
        with suppress(psutil.NoSuchProcess):
            used += sum(each.cpu_times()[:2])
    return used


class Meter:
    """Of everything between entering it and leaving it; the server may be elsewhere."""

    def __init__(self, pid: int | None) -> None:
        """`pid` is of the server's own process, if it is on this machine."""
        self._server = psutil.Process(pid) if pid else None
        self.before = self.peak = self.after = 0  # bytes of the server's process
        self.lags: list[float] = []  # seconds that our own event loop was late
        self.seconds = 0.0
        self.cpu: dict[str, float] = {}  # cores that each kind of process kept busy

    async def __aenter__(self) -> Self:
        self.before = self.peak = self.memory()
        self._began, self._used = time.monotonic(), self._used_by_now()
        self._task = asyncio.create_task(self._watch())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        self.seconds = time.monotonic() - self._began
        self.cpu = {
            kind: max(0.0, used - self._used[kind]) / self.seconds
            for kind, used in self._used_by_now().items()
        }

    def memory(self) -> int:
        """Resident bytes of the server's process now, without its workers."""
        with suppress(psutil.NoSuchProcess):
            if self._server:
                return self._server.memory_info().rss
        return 0

    def _used_by_now(self) -> dict[str, float]:
        """CPU seconds by the kind of process."""
        us = psutil.Process()
        alive = self._server is not None and self._server.is_running()
        servers = [self._server] if alive else []
        workers = [child for each in servers for child in each.children(recursive=True)]
        apart = {each.pid for each in servers + workers}
        browsers = [p for p in us.children(recursive=True) if p.pid not in apart]
        used = {
            "server": cpu_seconds(servers),
            "workers": cpu_seconds(workers),
            "clients": cpu_seconds([us]),
            "browsers": cpu_seconds(browsers),
        }
        machine = psutil.cpu_times()
        used["others"] = (
            machine.user + machine.nice + machine.system - sum(used.values())
        )
        return used

    async def _watch(self) -> None:
        while True:
            due = time.monotonic() + EVERY_SECONDS
            await asyncio.sleep(EVERY_SECONDS)
            self.lags.append(time.monotonic() - due)
            self.peak = max(self.peak, self.memory())
