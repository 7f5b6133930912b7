"""Log lines with the ids of runs and visitors, as JSON if LOG_FORMAT is "json"."""

import json
import logging
import os
import sys
from collections.abc import Callable
from contextvars import ContextVar
from datetime import UTC, datetime

# Characters of a message, and of a traceback. In these, libraries quote what a browser
# has sent, which may be a megabyte each time.
MOST_OF_MESSAGE, MOST_OF_TRACEBACK = 2_000, 10_000

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


def set_up(visitor: Callable[[], str] = str) -> None:
    """Make all loggers write JSON; `visitor` returns the id of the current visitor.

    Without LOG_FORMAT=json, only long messages change. Other handlers, such as
    Streamlit's, are removed. A logger with only a NullHandler stays silent.
    """
    logging.setLogRecordFactory(ShortRecord)
    if os.environ.get("LOG_FORMAT") != "json":
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines(visitor))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    for name in list(logging.root.manager.loggerDict):
        logger = logging.getLogger(name)
        if not all(isinstance(h, logging.NullHandler) for h in logger.handlers):
            logger.handlers.clear()
            logger.propagate = True
