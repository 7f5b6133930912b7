"""Whose quick question the lab answers now: few at once, fairly between people.

Strangers' files have a gate of their own. One that takes long to open, or was made to,
keeps other files waiting, and the lab has threads left for questions.
"""

import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from core.errors import ExplainedError
from core.jobs.job import Job
from core.jobs.queue import Queue

AT_ONCE = 4  # questions of all people, as many as the lab worker has threads
MOST = 8  # questions of one person that wait or are being answered
UPLOADS_AT_ONCE = 2  # files of all people that are opened; of one person, one

NO_TURN = (
    "The lab gave no answer in time: it is busy with other people's questions. "
    "Try again in a moment."
)
TOO_MANY = (
    "You have many questions to the lab open at once, perhaps in other tabs. "
    "Try again when they are answered."
)


class Turns:
    """A gate that threads wait at, each with a person's question."""

    def __init__(self, at_once: int = AT_ONCE, lane: str = "question") -> None:
        self._lane, self._capacity = lane, {lane: at_once}
        self._changed = threading.Condition()
        self._queue = Queue()

    @contextmanager
    def take(self, owner: str, seconds: float) -> Iterator[float]:
        """Wait for a turn; yields the seconds that are left of those given.

        A question of the server itself, of no owner, need not wait. ExplainedError
        where no turn comes in time, or where the owner has too many open.
        """
        if not owner:
            yield seconds
            return
        deadline = time.monotonic() + seconds
        mine = Job(uuid.uuid4().hex, "", (), self._lane, owner)
        with self._changed:
            if self._queue.of(owner) >= MOST:
                raise ExplainedError(TOO_MANY)
            self._queue.add(mine)
        try:
            with self._changed:
                due = self._changed.wait_for(lambda: self._is_due(mine), seconds)
            if not due:
                raise ExplainedError(NO_TURN)
            yield max(0.1, deadline - time.monotonic())
        finally:
            with self._changed:
                self._queue.remove(mine.id)
                self._changed.notify_all()

    def _is_due(self, mine: Job) -> bool:
        """Take the turn if it is this one's."""
        if self._queue.next(self._capacity) is not mine:
            return False
        self._queue.take(mine)
        self._changed.notify_all()  # there may be a turn for the next one too
        return True
