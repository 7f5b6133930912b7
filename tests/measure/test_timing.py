"""Timing: what is counted and what is not, on a device that works through a queue."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from core.measure.timing import Timing, measure, measure_side_by_side
from tests.queue_device import QueueDevice

CPU = torch.device("cpu")


class Clock:
    """A clock that stands still unless it is told to go on."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def spend(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock that core.measure.timing looks at."""
    clock = Clock()
    monkeypatch.setattr(time, "perf_counter", clock)
    return clock


@pytest.fixture
def device() -> Iterator[QueueDevice]:
    """A device with an empty queue."""
    device = QueueDevice()
    yield device
    device.synchronize()
    device.queue.put(-1)


def test_median_and_spread() -> None:
    """The median is the middle, the spread the least and the most, in any order."""
    timing = Timing((3.0, 1.0, 2.0, 10.0, 2.5))
    assert timing.median == 2.5
    assert timing.spread == (1.0, 10.0)
    assert timing.n == 5


def test_sleep_is_measured() -> None:
    """Sleeping 0.2 s is reported as that within 5%, which waking up costs."""
    timing = measure(lambda: time.sleep(0.2), CPU)
    assert timing.n == 5
    assert timing.median == pytest.approx(0.2, rel=0.05)


@pytest.mark.parametrize("warmup", [0, 1, 3])
def test_warm_up_is_not_counted(clock: Clock, warmup: int) -> None:
    """The first calls are made, and their seconds are left out."""
    costs = iter([100.0] * warmup + [1.0, 2.0, 3.0, 4.0])
    timing = measure(lambda: clock.spend(next(costs)), CPU, repeats=4, warmup=warmup)
    assert timing.seconds == (1.0, 2.0, 3.0, 4.0)
    assert next(costs, None) is None


def test_works_take_turns(clock: Clock) -> None:
    """A B A B, each with the seconds of its own."""
    calls: list[str] = []

    def work(name: str, seconds: float) -> Callable[[], None]:
        def call() -> None:
            calls.append(name)
            clock.spend(seconds)

        return call

    timings = measure_side_by_side([work("A", 2.0), work("B", 5.0)], CPU, repeats=3)
    assert "".join(calls) == "ABABABAB"
    assert [timing.seconds for timing in timings] == [(2.0,) * 3, (5.0,) * 3]


def test_the_queue_is_waited_for(device: QueueDevice) -> None:
    """With synchronize, the work that a call has queued is part of its seconds."""
    (timing,) = measure_side_by_side([device.launch], CPU, 3, 1, device.synchronize)
    assert timing.spread[0] > 0.029


def test_without_waiting_it_is_wrong(device: QueueDevice) -> None:
    """Without synchronize, only the queueing is measured: not a third of the truth."""
    waits: list[Any] = [device.synchronize, lambda _: None]
    honest, naive = (
        measure_side_by_side([device.launch], CPU, 3, 1, wait)[0] for wait in waits
    )
    assert honest.median / naive.median > 3


def test_device_is_idle_when_the_clock_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Work from before the start is waited for too, and not counted."""
    events: list[str] = []

    def clock() -> float:
        events.append("clock")
        return 0.0

    monkeypatch.setattr(time, "perf_counter", clock)
    measure_side_by_side(
        [lambda: events.append("work")], CPU, 1, 0, lambda _: events.append("idle")
    )
    assert events == ["idle", "clock", "work", "idle", "clock"]
