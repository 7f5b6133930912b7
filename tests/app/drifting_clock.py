"""A clock of our own, on a machine that a neighbour makes slower in the middle."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest

from core.measure import timing


class DriftingClock:
    """Time passes only within `work`; from the call `busy_from` on, five times as much.

    core.measure.timing reads it in the place of the real one.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, busy_from: int) -> None:
        self.now, self.calls, self.busy_from = 0.0, 0, busy_from
        clock = SimpleNamespace(perf_counter=lambda: self.now)
        monkeypatch.setattr(timing, "time", clock)

    def work(self, seconds: float, result: object = 0.0) -> Callable[[], object]:
        """What takes so many seconds on an idle machine."""

        def work() -> object:
            self.pass_by(seconds)
            return result

        return work

    def pass_by(self, seconds: float) -> None:
        """So many seconds' worth of work."""
        self.calls += 1
        self.now += seconds * (5 if self.calls >= self.busy_from else 1)
