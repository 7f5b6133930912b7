"""How a long job reports its progress, is steered, and is canceled."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from core.errors import CancelledError

T = TypeVar("T")


@dataclass(frozen=True)
class Control:
    """What the owner of a running job has set; the newest counts."""

    learning_rate: float | None = None  # None: the rate in the job's settings
    paused: bool = False
    number: int = 0  # the highest is the newest: messages may overtake each other


NO_CONTROL = Control()


@dataclass(frozen=True)
class Watch:
    """The connection between a job and its caller."""

    report: Callable[[Any], None] = lambda _: None  # takes plain data (core.results)
    cancelled: Callable[[], bool] = lambda: False
    control: Callable[[], Control] = lambda: NO_CONTROL  # returns the newest

    def check(self) -> None:
        """Raise CancelledError if the job was canceled."""
        if self.cancelled():
            raise CancelledError

    def until_cancelled(self, items: Iterable[T]) -> Iterator[T]:
        """Yield the items. After a cancel, raise CancelledError instead of the next."""
        for item in items:
            self.check()
            yield item

    def unless_cancelled(self, work: Callable[[], T]) -> Callable[[], T]:
        """Wrap `work`, so that a canceled job raises CancelledError instead."""

        def checked() -> T:
            self.check()
            return work()

        return checked


UNWATCHED = Watch()
