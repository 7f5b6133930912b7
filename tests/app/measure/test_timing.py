import time
from collections.abc import Callable

import pytest
import torch

from core import devices
from core.measure.timing import measure, measure_side_by_side

CPU = torch.device("cpu")


class Clock:
    """A clock that stands still between calls of `spend`."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def spend(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "perf_counter", clock)
    return clock


@pytest.mark.parametrize("warmup", [0, 1, 3])
def test_warm_up_is_not_counted(clock: Clock, warmup: int) -> None:
    costs = iter([100.0] * warmup + [1.0, 2.0, 3.0, 4.0])
    seconds = measure(lambda: clock.spend(next(costs)), CPU, repeats=4, warmup=warmup)
    assert seconds == (1.0, 2.0, 3.0, 4.0)
    assert next(costs, None) is None


def test_works_are_timed_alternately(clock: Clock) -> None:
    calls: list[str] = []

    def work(name: str, seconds: float) -> Callable[[], None]:
        def call() -> None:
            calls.append(name)
            clock.spend(seconds)

        return call

    timings = measure_side_by_side([work("A", 2.0), work("B", 5.0)], CPU, repeats=3)
    assert "".join(calls) == "ABABABAB"
    assert timings == [(2.0,) * 3, (5.0,) * 3]


def test_the_device_is_idle_when_the_clock_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    events: list[str] = []

    def clock() -> float:
        events.append("clock")
        return 0.0

    monkeypatch.setattr(time, "perf_counter", clock)
    monkeypatch.setattr(devices, "synchronize", lambda _: events.append("idle"))
    measure(lambda: events.append("work"), CPU, repeats=1, warmup=0)
    assert events == ["idle", "clock", "work", "idle", "clock"]
