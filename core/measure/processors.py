"""How much of the machine's processors a process had meanwhile, and others had.

Two runs at different times can only be compared if they had the machine to the same
extent. A run that shares the processors with twenty programs takes many times as long.
"""

import os
import time
from typing import NamedTuple

IDLE = ("idle", "iowait")  # psutil's names of the time in which no program ran
TWICE = ("guest", "guest_nice")  # this time counts in "user" and "nice", too


class Shares(NamedTuple):
    own: float  # processors that this process had, on average: 1.7 of 2
    others: float  # share of all processors' time that other programs had, from 0 to 1


class ProcessorMeter:
    """Reads the clocks of this process and of all programs, twice."""

    def begin(self) -> None:
        self._own, self._busy = time.process_time(), busy_seconds()

    def end(self, seconds: float) -> Shares | None:
        """The shares of the `seconds` since `begin`; None if they aren't known."""
        busy = busy_seconds()
        if self._busy is None or busy is None or seconds <= 0:
            return None
        own = (time.process_time() - self._own) / seconds
        others = (busy - self._busy) / seconds - own
        count = os.cpu_count() or 1
        return Shares(own, min(max(others / count, 0.0), 1.0))


def busy_seconds() -> float | None:
    """For how long programs have had this machine's processors, all added up.

    None without psutil, which comes with Dask.
    """
    try:
        import psutil
    except ImportError:
        return None
    times = psutil.cpu_times()._asdict()
    return sum(s for name, s in times.items() if name not in IDLE + TWICE)
