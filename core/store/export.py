"""What a visitor takes along: their runs as a table, all that is theirs as JSON."""

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, is_dataclass
from datetime import UTC, datetime
from typing import Any

from core.store.codec import StoreError
from core.store.results import RunSummary
from core.store.store import Store

FORMULA = ("=", "+", "-", "@", "\t", "\r")  # how what a spreadsheet would run begins
TIMES = ("submitted", "started", "ended", "created", "seen", "measured_at", "joined")
INTERNAL = ("seq", "visitor", "lane", "round")


def runs_csv(
    found: Iterable[RunSummary], people: Mapping[str, str] | None = None
) -> str:
    """A row a run, with its settings and figures, and a first row of names.

    With `people`, what each visitor is called, whose run it is comes first.
    """
    text = io.StringIO()
    rows = csv.writer(text)
    names = [name for name in RunSummary.__annotations__ if name not in INTERNAL]
    rows.writerow(names if people is None else ["student", *names])
    for each in found:
        row = _dated(vars(each))
        whose = [] if people is None else [people.get(each.visitor or "", "")]
        rows.writerow(map(_harmless, (*whose, *(row[name] for name in names))))
    return text.getvalue()


def runs_json(store: Store, found: Iterable[RunSummary]) -> str:
    """Runs with their epochs and curves. Raises StoreError."""
    return _json([_run(store, each) for each in found])


def everything(store: Store, visitor: str) -> str:
    """All that is kept of a visitor, as JSON; checkpoints only by their size.

    Raises StoreError.
    """
    known = store.visitors.get(visitor)
    content = {
        "visitor": known and _dated(asdict(known)),
        "runs": [_run(store, each) for each in store.runs.find(visitor, hidden=True)],
        "measurements": [_dated(vars(each)) for each in store.measurements.of(visitor)],
        "answers": store.answers.of(visitor),
        "classes": [_dated(each) for each in store.classes.of(visitor)],
    }
    return _json(content)


def _json(content: Any) -> str:
    """A figure that is no number, as a loss that diverged, is null."""
    return json.dumps(_plain(content), indent=1, allow_nan=False)


def _run(store: Store, summary: RunSummary) -> dict[str, Any]:
    found = {"summary": _dated(vars(summary))}
    try:
        kept = store.runs.get(summary.id)
    except StoreError as error:
        return {**found, "problem": str(error)}
    if kept is None:  # deleted in another tab just now
        return found
    value = _plain(kept.value)
    if isinstance(value, dict):
        value = {k: v for k, v in value.items() if k not in ("history", "losses")}
    return {
        **found,
        "arguments": kept.arguments,
        "start": kept.start,
        "epochs": kept.history,
        "curve": [point._asdict() for point in kept.losses],
        "fit": kept.fit,
        "result": value,
    }


def _harmless(value: Any) -> Any:
    """A text that no spreadsheet takes for a formula."""
    if isinstance(value, str) and value.startswith(FORMULA):
        return f"'{value}"
    return value


def _dated(row: dict[str, Any]) -> dict[str, Any]:
    """Times as ISO 8601."""
    return {
        name: datetime.fromtimestamp(value, UTC).isoformat(timespec="seconds")
        if name in TIMES and value is not None
        else value
        for name, value in row.items()
    }


def _plain(value: Any) -> Any:
    """What strict JSON takes."""
    if is_dataclass(value):
        return _plain(vars(value))
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, bytes):
        return f"{len(value):,} bytes"
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
