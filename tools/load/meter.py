"""Memory and CPU while people are there, and whether they themselves kept up."""

import asyncio
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Self

import psutil

EVERY_SECONDS = 0.1


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
