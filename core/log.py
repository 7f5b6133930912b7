"""Log lines with the ids of runs and visitors, as JSON if LOG_FORMAT is "json"."""

import json
import logging
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextvars import ContextVar
from datetime import UTC, datetime

from core.folders import ROOT

# Characters of a message, and of a traceback. In these, libraries quote what a browser
# has sent, which may be a megabyte each time.
MOST_OF_MESSAGE, MOST_OF_TRACEBACK = 2_000, 10_000

# In this time, so many warnings without a traceback are written of a kind; of
# tracebacks, it is one.
REPEAT_SECONDS, MOST_WARNINGS = 60.0, 20
REPEATS = "_repeats_another"  # a record's attribute; see Repeats

# What the names of the app's own files begin with; libraries may be in a folder beside
OWN = tuple(f"{ROOT / name}" for name in ("core", "pages", "to_device", "home.py"))

logger = logging.getLogger(__name__)

# The id of the run that core.jobs.worker works on.
current_run: ContextVar[str] = ContextVar("current_run", default="")


def shortened(text: str, most: int) -> str:
    """The text, or its beginning and end if it has more than `most` characters."""
    half = most // 2
    return text if len(text) <= most else f"{text[:half]} … {text[-half:]}"


class ShortRecord(logging.LogRecord):
    def getMessage(self) -> str:  # noqa: N802 - logging's name
        return shortened(super().getMessage(), MOST_OF_MESSAGE)


class JsonLines(logging.Formatter):
    """Writes a record as a JSON object, with the ids of a run and of a visitor.

    The record's `extra` may have these ids; if not, they are those of the
    current run and visitor.
    """

    def __init__(self, visitor: Callable[[], str]) -> None:
        super().__init__()
        self._visitor = visitor

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "run": getattr(record, "run", "") or current_run.get(),
            "visitor": getattr(record, "visitor", "") or self._visitor(),
        }
        if record.exc_info:
            text = self.formatException(record.exc_info)
            line["traceback"] = shortened(text, MOST_OF_TRACEBACK)
        return json.dumps({name: value for name, value in line.items() if value})


class Repeats(logging.Filter):
    """Lets a few messages of each kind through per minute, and counts the others.

    Tracebacks and warnings are counted. A browser can cause the same error 20 times a
    second, with 2 kB each. The count comes with the next line, whatever that says.
    """

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()  # guards the attribute below
        self._seen: dict[tuple[str, ...], tuple[float, int]] = {}  # since, and repeats

    def filter(self, record: logging.LogRecord) -> bool:
        known = vars(record)
        if REPEATS not in known:  # another handler may have asked before
            self._write_counts()
            has_trace = record.exc_info and record.exc_info[0]
            is_counted = has_trace or record.levelno >= logging.WARNING
            most = 1 if has_trace else MOST_WARNINGS
            known[REPEATS] = is_counted and self._count(kind_of(record), most)
        return not known[REPEATS]

    def _count(self, kind: tuple[str, ...], most: int) -> bool:
        with self._lock:
            since, repeats = self._seen.get(kind, (time.monotonic(), -most))
            self._seen[kind] = since, repeats + 1
            return repeats >= 0

    def _write_counts(self) -> None:
        before = time.monotonic() - REPEAT_SECONDS
        with self._lock:
            ended = [
                (kind, n) for kind, (since, n) in self._seen.items() if since <= before
            ]
            for kind, _ in ended:
                del self._seen[kind]
        for (name, where, run), repeats in ended:
            if repeats > 0:
                text = "the same message came again within a minute, %d times: %s, %s"
                logger.warning(text, repeats, name, where, extra={"run": run})


repeats = Repeats()


def kind_of(record: logging.LogRecord) -> tuple[str, ...]:
    """What a message is about, where it comes from, and the run's id.

    An error is known by its type, the line that raised it, and the last line of the
    app's own that led there: many errors of a library are raised in the same line.
    """
    run = getattr(record, "run", "") or current_run.get()
    kind, _, trace = record.exc_info or (None, None, None)
    if kind is None:
        return record.name, f"{record.pathname}:{record.lineno}", run
    lines = [
        (frame.f_code.co_filename, f"{frame.f_code.co_filename}:{number}")
        for frame, number in traceback.walk_tb(trace)
    ]
    own = [line for file, line in lines if file.startswith(OWN)]
    where = dict.fromkeys([*own[-1:], *(line for _, line in lines[-1:])])
    return kind.__qualname__, ", ".join(where), run


def set_up(visitor: Callable[[], str] = str) -> None:
    """Make all loggers write JSON; `visitor` returns the id of the current visitor.

    Without LOG_FORMAT=json, only long messages and repeated tracebacks change. Other
    handlers, such as Streamlit's, are removed. A logger with only a NullHandler stays
    silent.
    """
    logging.setLogRecordFactory(ShortRecord)
    if os.environ.get("LOG_FORMAT") != "json":
        return drop_repeats()
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines(visitor))
    handler.addFilter(repeats)
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    for name in list(logging.root.manager.loggerDict):
        logger = logging.getLogger(name)
        is_silent = all(isinstance(h, logging.NullHandler) for h in logger.handlers)
        if not logger.handlers or not is_silent:
            logger.handlers.clear()
            logger.propagate = True


def drop_repeats() -> None:
    """Let all handlers that write to the terminal drop repeated tracebacks."""
    names = list(logging.root.manager.loggerDict)
    # The last resort writes what loggers without a handler don't pass on.
    handlers = [logging.lastResort] if logging.lastResort else []
    for one in (logging.root, *map(logging.getLogger, names)):
        handlers += one.handlers
    for handler in handlers:
        if getattr(handler, "stream", None) in (sys.stdout, sys.stderr):
            handler.addFilter(repeats)
