"""What the server has done before its first visitor comes."""

from dataclasses import replace

import pytest

from core.jobs import idle
from core.jobs.cluster import ROOT
from core.jobs.job import Job
from core.ui import measured, warm
from tests import samples
from tests.jobs.follow import wait
from tests.process import python

LOAD = """
import gc, sys, time
from core.ui import warm

def best() -> float:
    def collect() -> float:
        began = time.perf_counter()
        gc.collect()
        return time.perf_counter() - began
    return min(collect() for _ in range(5))

before = best()
warm.load()
print(best() / before)
print(*sys.modules)
"""


def test_the_pages_code_is_there_and_costs_no_collection():
    """Collecting garbage takes a tenth of the time at most, and torch stays out."""
    ratio, modules = python("-c", LOAD).stdout.strip().splitlines()[-2:]
    assert float(ratio) < 0.1
    files = ROOT.joinpath("core", "ui").rglob("*.py")
    names = {".".join(each.relative_to(ROOT).with_suffix("").parts) for each in files}
    pages = {name for name in names if not name.endswith("__init__")}
    assert pages <= set(modules.split())
    assert "torch" not in modules.split()


@pytest.fixture
def left_to_measure(engine, monkeypatch):
    """What is measured in idle time where functions have brought these results."""
    wait(lambda: engine.machine() is not None)
    monkeypatch.delenv("MEASURE_WHEN_IDLE")
    monkeypatch.delenv("DASK_SCHEDULER_ADDRESS", raising=False)
    found: list[tuple] = []
    monkeypatch.setattr(idle, "work_off", lambda _, jobs: found.extend(jobs))

    def addresses(results: dict[str, object]) -> set[str]:
        def newest(address: str) -> Job | None:
            value = results.get(address)
            return value and Job("id", address, (), "train", value=value)

        monkeypatch.setattr(measured, "newest", newest)
        found.clear()
        warm.measure()
        return {address for address, _ in found}

    return addresses


def test_a_fresh_machine_measures_what_is_quick(engine, left_to_measure):
    """Each once: not what was measured here with this torch; what an older one was."""
    quick = {
        *("core.compare.race:race", "core.compare.timing_pitfalls:measure"),
        *("core.compare.step_profile:measure", "core.machine.parallel:measure"),
        *("core.move.transfers:measure", "core.speed.copies:measure"),
        *("core.speed.memory:measure", "core.speed.vectorize:measure"),
    }
    assert left_to_measure({}) == quick
    here = replace(samples.CARD, torch=engine.machine().devices[0].torch)
    race = replace(samples.RACE, environments=(here, here))
    known = {"core.compare.race:race": race}
    assert left_to_measure(known) == quick - known.keys()
    old = replace(samples.CARD, torch="2.6.0")
    known |= {"core.speed.copies:measure": replace(samples.COPIES, environment=old)}
    assert left_to_measure(known) == quick - {"core.compare.race:race"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("MEASURE_WHEN_IDLE", "0"), ("MEASURE_WHEN_IDLE", "No")),
        ("DASK_SCHEDULER_ADDRESS", "tcp://127.0.0.1:8786"),
    ],
)
def test_nothing_is_measured_unasked(monkeypatch, left_to_measure, name, value):
    """Where that is switched off, or where other apps may want the workers."""
    monkeypatch.setenv(name, value)
    assert left_to_measure({}) == set()
