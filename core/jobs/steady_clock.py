"""Dask's timers, on a clock that nobody sets.

Tornado's timers compare times of time.time(). When somebody sets the clock back by an
hour, heartbeats stop for an hour, and a message may wait that long to be sent. When the
clock is set forward, a scheduler may take all workers for dead.
"""

import time

import distributed.batched
import distributed.scheduler
from tornado.ioloop import IOLoop

_BEGINNING = time.time() - time.monotonic()


def now() -> float:
    """Seconds since 1970 by the clock as it was set when this process began."""
    return _BEGINNING + time.monotonic()


def use() -> None:
    """Let Tornado's and Dask's timers in this process follow `now`."""
    IOLoop.time = lambda self: now()  # type: ignore[method-assign]  # noqa: ARG005
    distributed.batched.time = now
    distributed.scheduler.time = now
