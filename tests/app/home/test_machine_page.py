from datetime import datetime, timedelta
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from core.config import RunConfig
from core.home import course_page, machine_page
from core.home.machine_page import Records
from core.store.codec import StoreError
from tests.app import samples

HERE = samples.machine("CUDA", "CPU")
CONFIG = RunConfig(task="sprites", epochs=2)
NOON = datetime(2026, 11, 24, 12)


def stored_run(run_id: str, accuracy: float | None, seconds: float, **more):
    """A row of the store, as far as figures look at it."""
    row = dict(
        id=run_id, accuracy=accuracy, seconds=seconds, submitted=NOON.timestamp()
    )
    row |= dict(task="sprites", device_name="A CPU", epochs=2, config=CONFIG)
    row |= dict(visitor="learner")
    return SimpleNamespace(**row | more)


@pytest.fixture
def rows(monkeypatch) -> list[SimpleNamespace]:
    """What the store has; a run's speed is 1,000 samples over its seconds."""
    rows: list[SimpleNamespace] = []
    store = SimpleNamespace(runs=SimpleNamespace(find=lambda *_, **__: rows))
    monkeypatch.setattr(machine_page.runs, "store", lambda: store)
    monkeypatch.setattr(machine_page, "datetime", SimpleNamespace(now=lambda: NOON))

    def run(run_id: str) -> SimpleNamespace:
        (row,) = (row for row in rows if row.id == run_id)
        epoch = SimpleNamespace(seconds=1.0, samples_per_second=1000 / row.seconds)
        return SimpleNamespace(history=(epoch,))

    monkeypatch.setattr(machine_page.runs, "run", run)
    machine_page.read.clear()
    return rows


def test_the_best_and_the_fastest_are_of_this_machine_and_its_task(rows):
    rows += [
        stored_run("good", 0.9, 4.0),
        stored_run("fast", 0.8, 1.0),
        stored_run("another machine", 0.99, 0.1, device_name="Another"),
        stored_run("other data", 0.99, 0.1, task="fashion-mnist"),
        stored_run("failed", None, None),
        stored_run("still running", 0.95, None),
        stored_run("of the app itself", 0.5, 9.0, visitor=None),
        stored_run("yesterday", 0.5, 9.0, submitted=(NOON - timedelta(1)).timestamp()),
    ]
    records = machine_page.read(HERE)
    assert records.best is not None
    assert records.fastest is not None
    assert (records.best.id, records.fastest.id) == ("good", "fast")
    assert records.samples_per_second == 1000
    assert records.today == 6
    figures = course_page.by_lesson(records)
    assert figures["Train"] == "up to 1,000 samples/s"
    assert figures["Evaluate"] == "90.0% right"


def test_where_nothing_can_be_read_there_is_no_figure(rows, monkeypatch):
    away = Mock(side_effect=StoreError("The database is away."))
    assert machine_page.read(HERE) == Records(len(rows))
    monkeypatch.setattr(machine_page.runs.store().runs, "find", away)
    machine_page.read.clear()
    assert machine_page.read(HERE) == Records()
