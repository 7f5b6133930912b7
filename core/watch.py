"""What a long job is given to be watched by: tell of progress, hear of a cancel.

And, where several machines have workers, to have a part of it done on another one.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from core.errors import CancelledError, ExplainedError, quoted

T = TypeVar("T")


def _tell_nobody(event: object) -> None:
    """Nobody is told."""


def _never() -> bool:
    return False


def _nowhere(host: str, *_: object) -> NoReturn:
    raise ExplainedError(f"The machine {quoted(host)} can't be reached from here.")


@dataclass(frozen=True)
class Watch:
    """The line between a job and whoever started it."""

    report: Callable[[Any], None] = _tell_nobody  # takes plain data, see core.results
    cancelled: Callable[[], bool] = _never
    host: str = ""  # the name of this machine, where several have workers
    # Calls the function of a name, as "core.training:run", on another machine.
    elsewhere: Callable[[str, str, tuple[Any, ...]], Any] = _nowhere

    def check(self) -> None:
        """CancelledError if somebody has cancelled."""
        if self.cancelled():
            raise CancelledError

    def each(self, items: Iterable[T]) -> Iterator[T]:
        """The items, until somebody cancels: then CancelledError before the next."""
        for item in items:
            self.check()
            yield item

    def at(self, host: str, function: Callable[..., T], *arguments: Any) -> T:
        """Call a function that takes a `watch` on the machine of that name.

        That may be this one, as "" is. Raises what the function raises; from elsewhere
        ExplainedError for any failure, also where that machine has gone meanwhile.
        """
        if host in ("", self.host):
            return function(*arguments, watch=self)
        address = f"{function.__module__}:{function.__qualname__}"
        return self.elsewhere(host, address, arguments)

    def checked(self, work: Callable[[], T]) -> Callable[[], T]:
        """The work, which raises CancelledError instead once somebody has cancelled."""

        def work_unless_cancelled() -> T:
            self.check()
            return work()

        return work_unless_cancelled


UNWATCHED = Watch()
