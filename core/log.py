"""Log lines for a host: JSON, one object a line, where LOG_FORMAT is "json".

They name runs and visitors by their ids. What people are called is never in them.
"""

import json
import logging
import os
import sys
from collections.abc import Callable
from contextvars import ContextVar
from datetime import UTC, datetime

IDS = ("run", "visitor")

# The id of the run that is worked on; set by what does so, see core.jobs.worker.
current_run: ContextVar[str] = ContextVar("current_run", default="")


class JsonLines(logging.Formatter):
    """Each record as an object, with the ids in its `extra`, else the current ones."""

    def __init__(self, visitor: Callable[[], str]) -> None:
        super().__init__()
        self._visitor = visitor

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **{name: getattr(record, name, "") for name in IDS},
        }
        line["run"] = line["run"] or current_run.get()
        line["visitor"] = line["visitor"] or self._visitor()
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps({name: value for name, value in line.items() if value})


def nobody() -> str:
    return ""


def set_up(visitor: Callable[[], str] = nobody) -> None:
    """Have all loggers of this process write so; `visitor` says who is being served.

    Streamlit, Dask and uvicorn give their loggers handlers of their own, each with
    another format: these go. One without any, or with one for nothing, is meant to be
    silent.
    """
    if os.environ.get("LOG_FORMAT") != "json":
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines(visitor))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    for name in list(logging.root.manager.loggerDict):
        logger = logging.getLogger(name)
        if any(not isinstance(each, logging.NullHandler) for each in logger.handlers):
            logger.handlers.clear()
            logger.propagate = True
