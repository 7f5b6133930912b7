"""Let a run's owner pause it or change its learning rate, between two steps.

If the learning rate has a schedule, a change scales the whole rest of the schedule,
which keeps its shape.
"""

import time

from torch.optim import Optimizer

from core.results import PAUSE_SECONDS, Change, Pause
from core.watch import NO_CONTROL, Control, Watch

MOST_CHANGES = 100  # of the learning rate in a run
LOOK_SECONDS = 0.1  # between two checks whether a paused run may go on


def scale(optimizer: Optimizer, factor: float) -> None:
    """Multiply the learning rate, now and in the rest of its schedule."""
    for group in optimizer.param_groups:
        for name in ("lr", "initial_lr", "max_lr", "min_lr"):
            if name in group:
                group[name] *= factor


class Steering:
    def __init__(self, optimizer: Optimizer, rate: float, watch: Watch) -> None:
        self.optimizer, self.rate, self.watch = optimizer, rate, watch
        self.control: Control = NO_CONTROL  # the last one received
        self.left = PAUSE_SECONDS
        self.changes: list[Change] = []

    @property
    def is_due(self) -> bool:
        return self.watch.control() is not self.control

    def apply(self, step: int) -> float:
        """Pause, and change the rate, as the owner says; returns the seconds paused."""
        self.control = self.watch.control()  # a later one is due at the next step
        waited = self._pause()
        rate = self.watch.control().learning_rate or self.rate
        if rate != self.rate and len(self.changes) < MOST_CHANGES:
            scale(self.optimizer, rate / self.rate)
            self.rate = rate
            self.changes.append(Change(step, rate))
            self.watch.report(self.changes[-1])
        return waited

    def _pause(self) -> float:
        began, before, waited = time.perf_counter(), self.left, 0.0
        while self.watch.control().paused and self.left > 0:
            self.watch.check()
            self.watch.report(Pause(True, self.left))
            time.sleep(LOOK_SECONDS)
            waited = time.perf_counter() - began
            self.left = max(0.0, before - waited)
        if waited:
            self.watch.report(Pause(False, self.left))
        return waited
