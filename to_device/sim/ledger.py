"""Count the simulated device's operations, and its copies and waits by line.

A real device doesn't report these counts. A profiler's trace shows only some
of the copies and waits, and a reader has to search for them.
"""

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Self

import torch

from to_device.sim import queue

TO_DEVICE, TO_HOST, WITHIN = "to device", "to host", "within the device"
_OURS, _TORCH = Path(__file__).parents[1], Path(torch.__file__).parent
# Code between a program and the device. A dry run stands there, too.
_NOT_THE_CALLERS = tuple(map(str, (_OURS / "sim", _OURS / "dryrun", _TORCH)))


class Event(NamedTuple):
    """A copy in one direction, or a wait for one reason, at one line of code."""

    what: str
    file: str  # the file of that code; "" in PyTorch's own threads
    line: int


@dataclass
class Counts:
    operations: Counter[str] = field(default_factory=Counter)  # keyed by name
    copies: Counter[Event] = field(default_factory=Counter)
    copied: Counter[Event] = field(default_factory=Counter)  # the copies' bytes
    waits: Counter[Event] = field(default_factory=Counter)  # how often the host waited

    def since(self, earlier: Self) -> "Counts":
        pairs = zip(vars(self).values(), vars(earlier).values(), strict=True)
        return Counts(*(count - before for count, before in pairs))


counts = Counts()  # since the process began


def total(counter: Counter[Event], kind: str) -> int:
    """Add up the copies or the waits of one kind, over all lines of code."""
    return sum(number for event, number in counter.items() if event.what == kind)


@contextmanager
def counting() -> Iterator[Counts]:
    """Count what happens in the block; the block's end fills in the counts."""
    before, inside = counts.since(Counts()), Counts()
    try:
        yield inside
    finally:
        vars(inside).update(vars(counts.since(before)))


def copy(way: str, size: int) -> None:
    """Note a copy of `size` bytes. `way` is TO_DEVICE, TO_HOST, or WITHIN."""
    event = Event(way, *_caller())
    counts.copies[event] += 1
    counts.copied[event] += size


def wait(why: str) -> None:
    """Wait until the device has done all its work, and note that the host waits."""
    counts.waits[Event(why, *_caller())] += 1
    queue.finish()


def _caller() -> tuple[str, int]:
    """The file and line of the innermost call from outside torch and our own code.

    "" and 0 if every caller is in torch, to_device.sim, or to_device.dryrun.
    """
    frame = sys._getframe(2)
    while frame.f_code.co_filename.startswith(_NOT_THE_CALLERS):
        if frame.f_back is None:
            return "", 0
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno
