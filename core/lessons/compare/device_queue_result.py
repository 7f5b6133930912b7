"""What the host and a device with a queue did, and when: plain data, without torch."""

from dataclasses import dataclass
from typing import NamedTuple

from core.lessons.compare.step_profile_result import DEVICE, HOST, Span
from core.measure.environment import Environment
from core.registry import stored

CALLS = 8
QUEUES, WAITS, COMPUTES = "asks", "waits", "computes"


class Call(NamedTuple):
    """The times of one call of `a @ a`, in seconds since the first call."""

    called: float
    queued: float  # the product is in the queue
    returned: float  # the host goes on to the next call
    done: float  # the device has computed the product


@dataclass(frozen=True)
class Timeline:
    calls: tuple[Call, ...]
    waited: float  # seconds until the device has computed all products

    @property
    def stopped(self) -> float:
        """Seconds until the last call returned.

        A clock that doesn't wait for the device shows this time.
        """
        return self.calls[-1].returned

    @property
    def done_by_then(self) -> int:
        """How many products the device has computed at the time `stopped`."""
        return sum(call.done <= self.stopped for call in self.calls)

    @property
    def share(self) -> float:
        """`stopped` as a share of the true time, `waited`."""
        return self.stopped / self.waited

    @property
    def spans(self) -> list[Span]:
        """When the host QUEUES or WAITS, and when the device COMPUTES."""
        spans, free = [], 0.0
        for call in self.calls:
            spans.append(Span(HOST, QUEUES, call.called, call.queued))
            spans.append(Span(HOST, WAITS, call.queued, call.returned))
            spans.append(Span(DEVICE, COMPUTES, max(call.called, free), call.done))
            free = call.done
        spans.append(Span(HOST, WAITS, self.stopped, self.waited))
        return spans


@stored("device_queue")
@dataclass(frozen=True)
class QueueLab:
    size: int  # rows of the square matrices
    alone: Timeline
    fetched: Timeline  # with `.item()` after each call
    environment: Environment
    date: str
