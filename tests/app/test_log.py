import io
import json
import logging
import re
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from core import log
from core.jobs.job import Job, Jobs, Outcome

OTHER = logging.getLogger("streamlit.somewhere")
SILENT = logging.getLogger("silent")  # as torch has some
ALONE = logging.getLogger("alone")


@pytest.fixture(autouse=True)
def no_traceback_before(monkeypatch):
    monkeypatch.setattr(log.repeats, "_seen", {})


@pytest.fixture
def json_lines(monkeypatch) -> Iterator[Callable[[], list[dict[str, Any]]]]:
    """Logs are JSON, and this reads what was written; loggers are as before then."""
    loggers = [logging.root, *map(logging.getLogger, logging.root.manager.loggerDict)]
    before = [(x, x.handlers[:], x.level, x.propagate) for x in loggers]
    written = io.StringIO()
    monkeypatch.setattr(sys, "stderr", written)
    monkeypatch.setenv("LOG_FORMAT", "json")
    OTHER.addHandler(logging.StreamHandler(written))
    SILENT.addHandler(logging.NullHandler())
    OTHER.propagate = SILENT.propagate = ALONE.propagate = False
    make = logging.getLogRecordFactory()
    log.set_up(lambda: "who is served")
    yield lambda: [json.loads(line) for line in written.getvalue().splitlines()]
    logging.setLogRecordFactory(make)
    for logger, handlers, level, propagate in before:
        logger.handlers[:], logger.level, logger.propagate = handlers, level, propagate
    logging.Logger.manager._clear_cache()


def test_log_lines_of_a_job_have_its_ids(json_lines):
    jobs = Jobs(lambda *_: None)
    jobs.add(Job("a1", "core.training:run", (), "train", "an id"))
    jobs.start("a1")
    jobs.end("a1", Outcome("failed", message="There was not enough memory."))
    lines = json_lines()
    statuses = [line["message"].partition(":")[0] for line in lines]
    assert statuses == ["queued", "starting", "failed"]
    assert {(line["run"], line["visitor"]) for line in lines} == {("a1", "an id")}
    assert {line["level"] for line in lines} == {"info"}


def test_one_line_holds_a_traceback_and_who_was_served(json_lines):
    SILENT.error("not for the log")
    try:
        raise ValueError("two\nlines")
    except ValueError:
        OTHER.exception("it failed")
    (line,) = json_lines()
    assert "ValueError: two\nlines" in line["traceback"]
    assert (line["visitor"], line["logger"]) == ("who is served", "streamlit.somewhere")


def test_a_line_stays_short_whatever_a_browser_has_sent(json_lines):
    sent = "first" + "x" * 1_000_000 + "last"
    try:
        raise ValueError(sent)
    except ValueError:
        OTHER.exception("no such part of a page: %s", sent)
    (line,) = json_lines()
    most = log.MOST_OF_MESSAGE + log.MOST_OF_TRACEBACK
    assert len(line["message"] + line["traceback"]) < most + 10
    assert line["message"].startswith("no such part of a page: firstx")
    assert line["traceback"].endswith("xlast")


def fail(number: int = 0, **more: Any) -> None:
    """Log the same error, or that of another line."""
    try:
        if number:
            raise ValueError(number)
        raise ValueError
    except ValueError:
        OTHER.exception("it failed", **more)


def test_each_kind_of_traceback_comes_once_a_minute_and_the_others_are_counted(
    json_lines, monkeypatch
):
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)
    for number in (0, 1, 2, 0, 3):
        fail(number)
    fail(extra={"run": "a1"})
    OTHER.error("no traceback")
    OTHER.error("no traceback")
    assert [line.get("run", "") for line in json_lines()] == ["", "", "a1", "", ""]
    now += log.REPEAT_SECONDS
    OTHER.info("another line")
    *counts, last = json_lines()[5:]
    assert last["message"] == "another line"
    assert sorted(re.findall(r"(\d) times", str(counts))) == ["1", "2"]
    fail()
    assert "ValueError" in json_lines()[-1]["traceback"]


def test_warnings_are_counted_too_and_errors_of_the_apps_own_lines_apart(
    json_lines, monkeypatch
):
    for _ in range(2 * log.MOST_WARNINGS):
        OTHER.warning("without a traceback")
        OTHER.info("no warning")
    levels = [line["level"] for line in json_lines()]
    assert levels.count("warning") == log.MOST_WARNINGS
    assert levels.count("info") == 2 * log.MOST_WARNINGS
    # Two lines of the app let the same line of a library fail.
    monkeypatch.setattr(log, "OWN", (__file__,))
    for number in (0, 1, 0, 1):
        try:
            if number:
                json.loads("x")
            json.loads("y")
        except ValueError:
            OTHER.exception("it failed")
    assert [line["level"] for line in json_lines()].count("error") == 2


def test_a_logger_that_passes_nothing_on_writes_json_too(json_lines):
    """As uvicorn's, whose lines went to the last resort."""
    ALONE.error("it failed")
    (line,) = json_lines()
    assert line["logger"] == "alone"


def test_a_terminal_also_gets_a_repeated_traceback_once(monkeypatch):
    written = io.StringIO()
    monkeypatch.delenv("LOG_FORMAT", raising=False)
    monkeypatch.setattr(sys, "stderr", written)
    handlers = [logging.StreamHandler(written) for _ in range(2)]
    monkeypatch.setattr(OTHER, "handlers", handlers)
    monkeypatch.setattr(OTHER, "propagate", False)
    log.set_up()
    for _ in range(3):
        fail()
    assert written.getvalue().count("Traceback") == len(handlers)


def test_without_a_host_logs_stay_as_they_are(monkeypatch):
    monkeypatch.delenv("LOG_FORMAT", raising=False)
    before = list(logging.root.handlers)
    log.set_up()
    assert logging.root.handlers == before
    assert sys.stderr not in [getattr(handler, "stream", None) for handler in before]
