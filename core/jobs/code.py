"""Run code that a visitor wrote, on the simulated device."""

import dataclasses
import json
import os
import re
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Literal, get_args

from core.folders import DATA
from core.jobs import child_process
from core.jobs.confined_code import ConfinedCode
from core.store import codec
from to_device.dryrun.report import (
    AFTER,
    MOST_PRINTED,
    NO_REPORT,
    NOT_SIMULATED,
    Report,
    Request,
    fits,
    is_kept,
    safe,
)
from to_device.errors import ExplainedError, quoted
from to_device.words import capitalized

# A visitor's script runs "confined", in a process that can do nothing but compute, or
# "here", if the app runs on the visitor's own machine. The app's own scripts run "own".
How = Literal["own", "here", "confined"]
HOW = get_args(How)
SECONDS = 10.0  # a request's own limit is a little lower, so that there is a report
CLOCK_FACTOR = 5.0  # a busy machine gives code a fifth of its time, or more
MEMORY_BYTES = 1_500_000_000
MOST_QUOTED = 400  # characters of an error
UNREADABLE = "The app can't read your code's result. Undo your change, and try again."
ENDED_ITSELF = "Your code stopped its own process, so there is no result."
LIMITS = {  # regular expressions for errors, and the limit that may be the reason
    r"\[Errno (1|30)\]": (
        "on a server, code can't start processes, use the network, or write files"
    ),
    "can't start new thread": "on a server, code can start about 60 threads",
    "^MemoryError|DefaultCPUAllocator": (
        f"on Linux, code can use at most {MEMORY_BYTES / 1e9:g} GB of memory here"
    ),
}
SPARES = 2  # processes that have loaded torch and wait; each is used once

_spares: list[ConfinedCode] = []
_lock = threading.Lock()


def run(request: Request, how: How) -> tuple[dict[str, Any], str]:
    """A dry run's report, ready for JSON, and what the script printed.

    If the script's process was stopped, the report only says why. Raises ExplainedError
    if the script may not run like this, whoever asks.
    """
    if how not in HOW or (how == "here" and os.environ.get("RUN_CODE")):
        raise ExplainedError("Visitors' code can't run on this server now.")
    request = dataclasses.replace(
        request,
        starts_processes=False,
        traceback=False,
        processor_seconds=request.seconds,
        clock_factor=CLOCK_FACTOR,
    )
    if how == "confined":
        return _run_confined(request)
    try:
        report, printed = child_process.call(
            "to_device.dryrun.run:run_and_read",
            request,
            DATA / "FashionMNIST",
            seconds=(1 + CLOCK_FACTOR) * SECONDS,
            memory_bytes=MEMORY_BYTES,
        )
    except child_process.UnreadableAnswerError:
        # The script wrote into the report's pipe.
        return _without_result(UNREADABLE), ""
    except child_process.ChildDiedError as error:
        why = ENDED_ITSELF if "exited with" in str(error) else str(error)
        return _without_result(why), ""
    except ExplainedError:  # the script replaced what the dry run itself calls
        return _without_result(UNREADABLE), ""
    if not fits(report):
        return _without_result(UNREADABLE), ""
    return safe(report, request), printed[:MOST_PRINTED]


def raised(failure: Mapping[str, Any]) -> str:
    error = ": ".join(filter(None, (failure["kind"], failure["message"])))
    limits = (limit for pattern, limit in LIMITS.items() if re.search(pattern, error))
    limit = next(limits, "")
    return quoted(error, most=MOST_QUOTED) + (f" ({limit})" if limit else "")


def failed(failure: Mapping[str, Any], name: str) -> str:
    """Which line of the file `name` failed, and how; "" if none did."""
    line = failure["line"]
    if line is None or line["file"] != name:
        return ""
    return f"Line {line['line']}: {raised(failure)}"


def hint(failure: Mapping[str, Any], name: str) -> str:
    """Which line of the file `name` to change, and why; "" if that isn't known."""
    culprit = failure["culprit"]
    if not (culprit and culprit["file"] == name and failure["why"]):
        return ""
    return advice(culprit["line"], failure["why"])


def advice(line: int, why: str) -> str:
    """What to do at a line, and why: change it, or write another one after it."""
    if why.startswith(AFTER):
        return f"Add a line after line {line}: {why.removeprefix(AFTER)}."
    return f"Change line {line}. {capitalized(why)}."


def _run_confined(request: Request) -> tuple[dict[str, Any], str]:
    with _lock:
        process = _spares.pop(0) if _spares else _start()
    threading.Thread(target=_fill_spares, daemon=True).start()
    process.wait_until_ready()
    end = process.ask(f"{json.dumps(dataclasses.asdict(request))}\n".encode())
    printed = end.errors.decode(errors="replace")
    report: Any = None
    with suppress(ValueError):
        report = codec.from_json(end.answer, Any)
    if fits(report) and is_kept(report := safe(report, request)):
        return report, printed
    is_unreadable = end.answer.strip() or end.status == NO_REPORT
    why = end.why or (UNREADABLE if is_unreadable else ENDED_ITSELF)
    return _without_result(why), printed


def _start() -> ConfinedCode:
    argv = ["-m", "to_device.dryrun.child"]
    return ConfinedCode(argv, seconds=SECONDS, memory_bytes=MEMORY_BYTES)


def _fill_spares() -> None:
    with _lock:
        while len(_spares) < SPARES:
            _spares.append(_start())


def _without_result(why: str) -> dict[str, Any]:
    return Report(NOT_SIMULATED, notes=[why]).plain()
