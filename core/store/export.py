"""A visitor's data to download: runs as a table, and everything as JSON."""

import csv
import io
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from itertools import chain
from typing import Any

from cattrs import Converter

from core.results import without_times
from core.store.codec import StoreError
from core.store.store import Store
from core.store.tables import SETTINGS, Measurement, RunSummary

# If a cell begins in this way, a spreadsheet takes it for a formula, and runs it. In
# many languages, a spreadsheet begins a new cell at each semicolon.
FORMULA = re.compile(r"(^|[;\t\r\n])(?=[=+\-@＝＋－＠\t\r])")
TIMES = ("submitted", "started", "ended", "created", "seen", "measured_at", "joined")
RUN = (
    *("id", "address", "status", "message", "submitted", "started", "ended", "step"),
    *("steps", *SETTINGS, "device_name", "parameters", "accuracy", "r2", "seconds"),
    *("name", "hidden", "withheld", "changes"),
)
INTERNAL = ("seq", "visitor", "lane", "round")
# Whether a visitor who gave these answers may see a value: by its name, and by the
# arguments of the function that measured it
Sees = Callable[[Mapping[str, Any], str, Any, tuple], bool]
PLAIN = Converter()  # converts values to what strict JSON allows
PLAIN.register_unstructure_hook(bytes, lambda data: f"{len(data):,} bytes")
PLAIN.register_unstructure_hook(float, lambda x: x if math.isfinite(x) else None)


def runs_csv(
    runs: Iterable[RunSummary], people: Mapping[str, str] | None = None
) -> str:
    """CSV: the columns' names, then a line of settings and figures per run.

    `people` maps visitors to names. If it is given, all runs have to be training runs,
    and the first column has the name of each run's owner.
    """
    if people is None:
        return csv_text(RUN, (_row(run).values() for run in runs))
    names = [name for name in RUN if name != "address"]  # all are training runs
    rows = ((people.get(r.visitor or "", ""), *_row(r, names).values()) for r in runs)
    return csv_text(("student", *names), rows)


def csv_text(names: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """CSV of names and rows. Spreadsheets take no cell for a formula."""
    text = io.StringIO()
    table = csv.writer(text)
    table.writerow(names)
    for cells in rows:
        table.writerow(
            FORMULA.sub(r"\1'", cell) if isinstance(cell, str) else cell
            for cell in cells
        )
    return text.getvalue()


def runs_json(store: Store, runs: Iterable[RunSummary]) -> bytes:
    return _together(_list(_run(store, run) for run in runs))


def everything(store: Store, visitor: str, may_see: Sees = lambda *_: True) -> bytes:
    """All data of a visitor as JSON, but only the sizes of checkpoints.

    Of measurements and answers, the values come that the visitor `may_see`.
    """
    row = store.visitors.get(visitor)
    runs = store.runs.find(visitor, hidden=True)
    answers = store.answers.of(visitor)

    def shown(name: str, value: Any, arguments: tuple = ()) -> Any:
        return value if may_see(answers, name, value, arguments) else None

    rest = {
        "measurements": [
            _dated(asdict(replace(row, value=shown(row.kind, row.value, _call(row)))))
            for row in store.measurements.of(visitor)
        ],
        "answers": {name: shown(name, value) for name, value in answers.items()},
        "classes": [_dated(row) for row in store.classes.of(visitor)],
    }
    return _together(
        ['{"visitor": ', _json(row and _dated(asdict(row))), ',\n"runs": '],
        _list(_run(store, run) for run in runs),
        (f',\n"{name}": {_json(value)}' for name, value in rest.items()),
        ["}"],
    )


def _call(measurement: Measurement) -> tuple:
    """The arguments of the function that measured."""
    return tuple((measurement.provenance or {}).get("arguments", ()))


def _together(*parts: Iterable[str]) -> bytes:
    """The parts as one file. Only one run at a time is in memory in another form.

    As objects, a run takes some ten times as much as its text.
    """
    file = io.BytesIO()
    for text in chain.from_iterable(parts):
        file.write(text.encode())
    return file.getvalue()


def _list(items: Iterable[Any]) -> Iterator[str]:
    """A JSON list with an item a line."""
    between = "[\n"
    for item in items:
        yield between + _json(item)
        between = ",\n"
    yield "[]" if between == "[\n" else "\n]"


def _json(content: Any) -> str:
    """Strict JSON, in which NaN is null."""
    return json.dumps(PLAIN.unstructure(content), allow_nan=False)


def _run(store: Store, summary: RunSummary) -> dict[str, Any]:
    row = {"summary": _row(summary, (*RUN, *INTERNAL))}
    try:
        run = store.runs.get(summary.id)
    except StoreError as error:
        return {**row, "problem": str(error)}
    if run is None:  # deleted in another tab just now
        return row
    value = PLAIN.unstructure(run.value)
    if isinstance(value, dict):
        value = {k: v for k, v in value.items() if k not in ("history", "losses")}
    progress = run.progress
    whole = row | {
        "arguments": run.arguments,
        "start": progress.started,
        "epochs": progress.history,
        "curve": [point._asdict() for point in progress.losses],
        "fit": progress.fit,
        "result": value,
    }
    return without_times(PLAIN.unstructure(whole)) if summary.is_simulated else whole


def _row(run: RunSummary, names: Iterable[str] = RUN) -> dict[str, Any]:
    return _dated({name: getattr(run, name) for name in names})


def _dated(row: dict[str, Any]) -> dict[str, Any]:
    """The row with its times as ISO 8601."""
    return {
        name: datetime.fromtimestamp(value, UTC).isoformat(timespec="seconds")
        if name in TIMES and value is not None
        else value
        for name, value in row.items()
    }
