"""What a long job is given to be watched by: tell of progress, hear of a cancel."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from core.errors import CancelledError

T = TypeVar("T")


def _tell_nobody(event: object) -> None:
    """Nobody is told."""


def _never() -> bool:
    return False


@dataclass(frozen=True)
class Watch:
    """The line between a job and whoever started it."""

    report: Callable[[Any], None] = _tell_nobody  # takes plain data, see core.results
    cancelled: Callable[[], bool] = _never

    def check(self) -> None:
        """CancelledError if somebody has cancelled."""
        if self.cancelled():
            raise CancelledError

    def each(self, items: Iterable[T]) -> Iterator[T]:
        """The items, until somebody cancels: then CancelledError before the next."""
        for item in items:
            self.check()
            yield item

    def checked(self, work: Callable[[], T]) -> Callable[[], T]:
        """The work, which raises CancelledError instead once somebody has cancelled."""

        def work_unless_cancelled() -> T:
            self.check()
            return work()

        return work_unless_cancelled


UNWATCHED = Watch()
