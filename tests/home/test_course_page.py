"""The figures of this machine."""

from dataclasses import replace
from datetime import datetime, timedelta
from types import SimpleNamespace

import pytest

from core.config import RunConfig
from core.home import course_page as course
from core.store.codec import StoreError
from tests import samples

HERE = samples.machine("CUDA", "CPU")
CONFIG = RunConfig(task="sprites", epochs=2)
NOON = datetime(2026, 11, 24, 12)


def kept(run_id: str, accuracy: float | None, seconds: float, **more):
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
    monkeypatch.setattr(course.runs, "store", lambda: store)
    monkeypatch.setattr(course, "datetime", SimpleNamespace(now=lambda: NOON))

    def run(run_id: str) -> SimpleNamespace:
        (row,) = (row for row in rows if row.id == run_id)
        epoch = SimpleNamespace(seconds=1.0, samples_per_second=1000 / row.seconds)
        return SimpleNamespace(history=(epoch,))

    monkeypatch.setattr(course.runs, "run", run)
    course.records.clear()
    return rows


def test_the_best_and_the_fastest_are_of_this_machine_and_its_task(rows):
    rows += [
        kept("good", 0.9, 4.0),
        kept("fast", 0.8, 1.0),
        kept("another machine", 0.99, 0.1, device_name="Another"),
        kept("other data", 0.99, 0.1, task="fashion-mnist"),
        kept("failed", None, 0.1),
        kept("of the app itself", 0.5, 9.0, visitor=None),
        kept("yesterday", 0.5, 9.0, submitted=(NOON - timedelta(1)).timestamp()),
    ]
    reached = course.records(HERE)
    assert reached.best is not None
    assert reached.fastest is not None
    assert (reached.best.id, reached.fastest.id) == ("good", "fast")
    assert reached.samples_per_second == 1000
    assert reached.today == 5
    told = course.by_lesson(reached)
    assert told["Train"] == "up to 1,000 samples/s"
    assert told["Evaluate"] == "90.0% right"


def test_where_nothing_can_be_read_there_is_no_figure(rows, monkeypatch):
    def away(*_, **__):
        raise StoreError("The database is away.")

    assert course.records(HERE) == course.Records(len(rows))
    monkeypatch.setattr(course.runs.store().runs, "find", away)
    course.records.clear()
    assert course.records(HERE) == course.Records()


@pytest.fixture
def measure(monkeypatch):
    """Sets what was measured last, by the function's address."""

    def set_to(values: dict[str, object]) -> None:
        jobs = {name: SimpleNamespace(value=value) for name, value in values.items()}
        monkeypatch.setattr(course.last_measurement, "newest", jobs.get)

    return set_to


def test_measurements_are_told_once_their_page_does(measure, monkeypatch):
    values = {
        course.race.RaceLab.address: samples.RACE,
        course.ladder.PANEL.address: samples.CLIMBED,
        course.cost.CostLab.address: samples.COST,
    }
    measure(values)
    monkeypatch.setattr(course.guess, "made", lambda _: None)
    monkeypatch.setattr(course.rungs, "is_revealed", lambda _: False)
    assert course.by_lesson(course.Records()) == {}
    monkeypatch.setattr(course.guess, "made", lambda _: course.guess.SHOWN)
    monkeypatch.setattr(course.rungs, "is_revealed", lambda _: True)
    assert course.by_lesson(course.Records()) == {
        "Compare": "1.19× for Testing card",
        "Speed": "13× on the ladder",
        "Scale": "1.20× on 2 ranks (gloo, CPU)",
    }


def test_a_measurement_that_is_not_sure_has_no_ratio(measure, monkeypatch):
    slow, *_ = samples.RACE.counted(0)
    uneven = replace(slow, train_seconds=9 * slow.train_seconds)
    trials = (uneven if trial is slow else trial for trial in samples.RACE.trials)
    one, more, two, *rest = samples.COST.steps
    either = replace(two, seconds=(0.001, 0.0014) * 2 + (0.0012,))  # faster or slower
    values = {
        course.race.RaceLab.address: replace(samples.RACE, trials=tuple(trials)),
        course.cost.CostLab.address: replace(
            samples.COST, steps=(one, more, either, *rest)
        ),
    }
    measure(values)
    monkeypatch.setattr(course.guess, "made", lambda _: course.guess.SHOWN)
    assert course.by_lesson(course.Records()) == {
        "Compare": "1.14 to 11× for Testing card"
    }
