"""A cache like functools.lru_cache, of which one visitor's part can be dropped."""

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")


class Cache(Generic[Value]):
    """Calls a function, and keeps its newest values by their arguments.

    Errors aren't kept. Threads that ask for the same at the same time get one value.
    """

    def __init__(self, function: Callable[..., Value], most: int) -> None:
        self._function, self._most = function, most
        self._lock = threading.Lock()  # guards the field below
        self._values: dict[tuple[Any, ...], Value] = {}  # the last one was asked last
        self._drops = 0  # so that what is read during a drop isn't kept

    def __call__(self, *arguments: Any) -> Value:
        with self._lock:
            if arguments in self._values:
                value = self._values[arguments] = self._values.pop(arguments)
                return value
            drops = self._drops
        value = self._function(*arguments)
        with self._lock:
            if drops != self._drops:
                return value
            value = self._values.setdefault(arguments, value)
            if len(self._values) > self._most:
                del self._values[next(iter(self._values))]
        return value

    def kept(self, *arguments: Any) -> Value | None:
        """The value of these arguments; None if it isn't kept (anymore)."""
        with self._lock:
            return self._values.get(arguments)

    def drop(self, which: Callable[[tuple[Any, ...], Value], bool]) -> None:
        """Forget the values for which `which(arguments, value)` is true."""
        with self._lock:
            self._drops += 1
            self._values = {
                arguments: value
                for arguments, value in self._values.items()
                if not which(arguments, value)
            }
