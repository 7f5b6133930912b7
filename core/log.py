"""Log lines with the ids of runs and visitors, as JSON if LOG_FORMAT is "json"."""

import json
import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from contextvars import ContextVar
from datetime import UTC, datetime

# Characters of a message, and of a traceback. In these, libraries quote what a browser
# has sent, which may be a megabyte each time.
MOST_OF_MESSAGE, MOST_OF_TRACEBACK = 2_000, 10_000

REPEAT_SECONDS = 60.0  # in which one traceback of a kind is written
REPEATS = "_repeats_another"  # a record's attribute; see Repeats

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
    """Lets one traceback of each kind through per minute, and then counts the others.

    A kind is an exception's type, the line that raised it, and the run that it is
    about. A browser can cause the same error 20 times a second, with 2 kB each. The
    count comes with the next line, whatever that says.
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
            known[REPEATS] = bool(has_trace) and self._count(kind_of(record))
        return not known[REPEATS]

    def _count(self, kind: tuple[str, ...]) -> bool:
        with self._lock:
            since, repeats = self._seen.get(kind, (time.monotonic(), -1))
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
            if repeats:
                text = "the same traceback came again within a minute, %d times: %s, %s"
                logger.warning(text, repeats, name, where, extra={"run": run})


repeats = Repeats()


def kind_of(record: logging.LogRecord) -> tuple[str, ...]:
    """The type of a record's exception, where it was raised, and the run's id."""
    assert record.exc_info
    kind, _, trace = record.exc_info
    assert kind
    while trace and trace.tb_next:
        trace = trace.tb_next
    where = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace else ""
    return kind.__qualname__, where, getattr(record, "run", "") or current_run.get()


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
        if not all(isinstance(h, logging.NullHandler) for h in logger.handlers):
            logger.handlers.clear()
            logger.propagate = True


def drop_repeats() -> None:
    """Let all handlers that write to the terminal drop repeated tracebacks."""
    names = list(logging.root.manager.loggerDict)
    for one in (logging.root, *map(logging.getLogger, names)):
        for handler in one.handlers:
            if getattr(handler, "stream", None) in (sys.stdout, sys.stderr):
                handler.addFilter(repeats)
