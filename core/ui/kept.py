"""Answers of the workers that are kept for all visitors, so that none waits twice."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

from core.jobs.engine import in_background

Answer = TypeVar("Answer")


class KeptAnswer(Generic[Answer]):
    """The newest answer to a question, for any thread.

    Only the first to ask waits. Once the answer is older than `seconds`, whoever looks
    has it asked anew in the background, and sees what comes at the next look.
    """

    def __init__(self, question: Callable[[], Answer], seconds: float) -> None:
        self._question, self._seconds = question, seconds
        self._lock = threading.Lock()  # for the rest
        self.clear()

    def clear(self) -> None:
        """Forget the answer: whoever looks next waits for a new one."""
        self.newest: Answer | None = None  # for a look that asks nothing
        self._came = 0.0
        self._asking: Future[Answer] | None = None

    def __call__(self) -> Answer:
        """The answer; raises what the question raises, where there is none to show."""
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
        except Exception as problem:  # whoever waits is told, and the next asks again
            error = problem
        with self._lock:
            if self._asking is asking:  # else it was cleared meanwhile
                self.newest, self._asking = answer, None
                self._came = time.monotonic()
        if error is None:
            asking.set_result(answer)  # type: ignore[arg-type]
        else:
            asking.set_exception(error)
