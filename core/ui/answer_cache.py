"""Answers of the workers, shared by all visitors."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

from core.jobs.engine import in_background

Answer = TypeVar("Answer")


class KeptAnswer(Generic[Answer]):
    """The newest answer to a question, for any thread.

    Only the first caller waits. A call that finds the answer older than `seconds` has
    it asked anew in the background, for the next call.
    """

    def __init__(self, question: Callable[[], Answer], seconds: float) -> None:
        self._question, self._seconds = question, seconds
        self._lock = threading.Lock()  # for the rest
        self.clear()

    def clear(self) -> None:
        """Forget the answer: the next caller waits for a new one."""
        self.newest: Answer | None = None
        self._came = 0.0
        self._asking: Future[Answer] | None = None

    def __call__(self) -> Answer:
        """The answer; without one, raises what the question raises."""
        with self._lock:
            newest, asking = self.newest, self._asking
            stale = time.monotonic() > self._came + self._seconds
            if asking is None and (newest is None or stale):
                asking = self._asking = Future()
                in_background(self._ask, asking)
        if newest is not None:
            return newest
        assert asking is not None
        return asking.result()

    def _ask(self, asking: "Future[Answer]") -> None:
        answer = error = None
        try:
            answer = self._question()
        except Exception as problem:  # for callers that wait; the next one asks again
            error = problem
        with self._lock:
            if self._asking is asking:  # it was not cleared meanwhile
                self.newest, self._asking = answer, None
                self._came = time.monotonic()
        if error is None:
            asking.set_result(answer)  # type: ignore[arg-type]
        else:
            asking.set_exception(error)
