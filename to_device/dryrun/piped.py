"""What stands in for a script's standard input."""

import io
import sys
import threading
from typing import Any


class Piped(io.RawIOBase):
    """A standard input that notes when the script reads at its end.

    At the end, `readline` and loops say nothing, and pdb catches the error of `input`.
    """

    name = "<stdin>"

    def __init__(self, source: Any) -> None:
        super().__init__()
        self.source = source
        self.had_data = self.has_ended = False

    @property
    def is_missed(self) -> bool:
        """Whether the script wanted input, and there was none at all."""
        return self.has_ended and not self.had_data

    def readinto(self, buffer: Any) -> int:
        part = self.source.read1(len(buffer))
        buffer[: len(part)] = part
        self.had_data |= bool(part)
        # In a terminal, nobody may ever press the key for which a thread waits.
        is_main = threading.current_thread() is threading.main_thread()
        self.has_ended |= is_main and not part
        return len(part)

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self.source.fileno()

    def isatty(self) -> bool:
        return self.source.isatty()


def install() -> Piped:
    """Put it in the place of `sys.stdin`, if that is a file."""
    text = sys.stdin
    piped = Piped(getattr(text, "buffer", None))
    if isinstance(text, io.TextIOWrapper):
        buffer = io.BufferedReader(piped)
        sys.stdin = io.TextIOWrapper(buffer, text.encoding, text.errors)
    return piped
