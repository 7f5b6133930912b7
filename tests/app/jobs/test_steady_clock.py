"""Timers that go on whatever somebody sets the clock to."""

import asyncio
import time

import pytest
from distributed.batched import BatchedSend
from tornado.ioloop import IOLoop, PeriodicCallback

from core.jobs import steady_clock
from tests.app import event_loop


@pytest.fixture(autouse=True)
def steady(monkeypatch) -> None:
    """As at an app's start; afterward this process has the clock that it had."""
    monkeypatch.setattr(IOLoop, "time", IOLoop.time)
    for module in ("batched", "scheduler"):
        name = f"distributed.{module}.time"
        monkeypatch.setattr(name, lambda: time.time())
    steady_clock.use()


@pytest.mark.parametrize("jump", [-3600, 3 * 3600])
def test_heartbeats_go_on_when_the_clock_is_set(monkeypatch, jump):
    async def beats() -> int:
        beats = []
        callback = PeriodicCallback(lambda: beats.append(1), 10)
        callback.start()
        await asyncio.sleep(0.1)
        real = time.time
        monkeypatch.setattr(time, "time", lambda: real() + jump)
        before = len(beats)
        for _ in range(500):
            await asyncio.sleep(0.01)
            if len(beats) >= before + 5:
                break
        callback.stop()
        return len(beats) - before

    assert event_loop.run(beats()) >= 5


def test_messages_go_on_when_the_clock_is_set_back(monkeypatch):
    sent: list[object] = []

    class Comm:
        def closed(self) -> bool:
            return False

        def abort(self) -> None:
            pass

        async def write(self, payload: list, **_: object) -> int:
            sent.extend(payload)
            return 1

    async def send() -> list[object]:
        stream = BatchedSend(interval="50ms")
        stream.start(Comm())
        stream.send("before")
        while not sent:
            await asyncio.sleep(0.001)
        real = time.time
        monkeypatch.setattr(time, "time", lambda: real() - 3600)
        stream.send("after")  # within the interval, so that it waits for its end
        for _ in range(500):
            await asyncio.sleep(0.01)
            if len(sent) == 2:
                break
        stream.abort()
        return sent

    assert event_loop.run(send()) == ["before", "after"]
