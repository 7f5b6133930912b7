"""core.ui.home.earned: figures of this machine, from what is kept."""

import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from core.config import RunConfig
from core.data.results import DatasetStatus
from core.store.codec import StoreError
from core.ui.home import earned
from tests import samples

HERE = samples.machine("CUDA", "CPU")
CONFIG = RunConfig(task="sprites", epochs=2)


def kept(
    run_id: str, accuracy: float | None, seconds: float, **more
) -> SimpleNamespace:
    """A row of the store, as far as figures look at it."""
    row = dict(id=run_id, accuracy=accuracy, seconds=seconds, submitted=time.time())
    row |= dict(task="sprites", device_name="A CPU", epochs=2, config=CONFIG)
    return SimpleNamespace(**row | more)


@pytest.fixture
def rows(monkeypatch) -> list[SimpleNamespace]:
    """What the store has; a run's speed is 1,000 samples over its seconds."""
    rows: list[SimpleNamespace] = []
    found = SimpleNamespace(runs=SimpleNamespace(find=lambda **_: rows))
    monkeypatch.setattr(earned, "store", lambda: found)

    def run(run_id: str) -> SimpleNamespace:
        (row,) = (each for each in rows if each.id == run_id)
        epoch = SimpleNamespace(seconds=1.0, samples_per_second=1000 / row.seconds)
        return SimpleNamespace(history=(epoch,))

    monkeypatch.setattr(earned.runs, "run", run)
    earned.by_runs.clear()
    return rows


def test_the_best_and_the_fastest_are_of_this_machine_and_its_task(rows):
    """Others were trained elsewhere, on other data, or not to their end."""
    rows += [
        kept("good", 0.9, 4.0),
        kept("fast", 0.8, 1.0),
        kept("elsewhere", 0.99, 0.1, device_name="Another"),
        kept("other data", 0.99, 0.1, task="fashion-mnist"),
        kept("failed", None, 0.1),
        kept("yesterday", 0.5, 9.0, submitted=time.time() - 24 * 3600),
    ]
    found = earned.by_runs(HERE)
    assert found.best is not None
    assert found.fastest is not None
    assert (found.best.id, found.fastest.id) == ("good", "fast")
    assert found.samples_per_second == 1000
    assert found.today == 5
    told = earned.by_lesson(found)
    assert told["Train"] == "up to 1,000 samples/s"
    assert told["Evaluate"] == "90.0% right"


def test_where_nothing_can_be_read_nothing_is_told(rows, monkeypatch):
    """Neither a zero nor a figure of before."""

    def away(**_):
        raise StoreError("The database is away.")

    data = DatasetStatus(source="here")
    assert earned.by_runs(replace(HERE, fashion_mnist=data)) == earned.Earned(len(rows))
    monkeypatch.setattr(earned.store().runs, "find", away)
    earned.by_runs.clear()
    assert earned.by_runs(HERE) == earned.Earned()


def test_measurements_are_told_once_their_page_does(monkeypatch):
    """Of a race who won, of a climb its headline; not while a guess hides them."""
    values = {
        earned.race.PANEL.address: samples.RACE,
        earned.ladder.PANEL.address: samples.CLIMBED,
        earned.cost.LAB.panel.address: samples.COST,
    }

    def newest(address: str):
        value = values.get(address)
        return None if value is None else SimpleNamespace(value=value)

    monkeypatch.setattr(earned.measured, "newest", newest)
    monkeypatch.setattr(earned.guess, "made", lambda _: None)
    monkeypatch.setattr(earned.rungs, "is_revealed", lambda _: False)
    assert earned.by_lesson(earned.Earned()) == {}
    monkeypatch.setattr(earned.guess, "made", lambda _: earned.guess.SHOWN)
    monkeypatch.setattr(earned.rungs, "is_revealed", lambda _: True)
    told = earned.by_lesson(earned.Earned())
    assert told == {
        "Compare": "1.19× for Testing card",
        "Speed": "13× on the ladder",
        "Scale": "1.20× on 2 ranks (gloo, CPU)",
    }
    slow, *_ = values[earned.race.PANEL.address].counted(0)
    uneven = replace(slow, train_seconds=9 * slow.train_seconds)
    trials = (uneven if each is slow else each for each in samples.RACE.trials)
    values[earned.race.PANEL.address] = replace(samples.RACE, trials=tuple(trials))
    one, more, two, *rest = samples.COST.steps
    either = replace(two, seconds=(0.001, 0.0014) * 2 + (0.0012,))  # faster or slower
    steps = (one, more, either, *rest)
    values[earned.cost.LAB.panel.address] = replace(samples.COST, steps=steps)
    told = earned.by_lesson(earned.Earned())
    assert told["Compare"] == "Testing card wins"  # by how much is not sure
    assert "Scale" not in told
