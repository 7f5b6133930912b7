"""Processes that don't answer: do they hang, or are they busy?

A process that is starved by a loaded machine, or that holds the interpreter's lock in a
long call, answers late, but it uses a processor or waits for one. A process that was
stopped, or that waits for a lock forever, does neither.
"""

import time
from contextlib import suppress

import psutil

WATCHED_SECONDS = 3.0  # in this time, even a starved process gets a processor
TICK_SECONDS = 0.01  # what the system counts, so a process that used less did nothing


def hangs(pid: int | None) -> bool:
    """Whether a process that should answer does nothing; takes WATCHED_SECONDS.

    False for a process that has ended, which somebody else notices.
    """
    if not pid:  # psutil would take this process
        return False
    try:
        process = psutil.Process(pid)
        before, began = sum(process.cpu_times()[:2]), time.monotonic()
        while time.monotonic() < began + WATCHED_SECONDS:
            status = process.status()
            if status == psutil.STATUS_STOPPED:
                return True
            if status in (psutil.STATUS_RUNNING, psutil.STATUS_DISK_SLEEP):
                return False  # it has or awaits a processor, or awaits a disk
            time.sleep(WATCHED_SECONDS / 10)
        return sum(process.cpu_times()[:2]) - before < TICK_SECONDS
    except psutil.Error:
        return False


def kill(pid: int | None) -> None:
    """End a process, even a stopped one, with all processes that it started."""
    if not pid:
        return
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        for member in (*process.children(recursive=True), process):
            with suppress(psutil.Error):
                member.kill()
