"""core.compare.rows: rows that stand by themselves, and records that come back."""

import json
from dataclasses import asdict, replace

import pytest

from core import restore
from core.compare import rows as flat
from core.compare.candidates import Candidate
from core.compare.results import (
    PARTS,
    WAYS,
    CandidateFailure,
    Cell,
    Crossover,
    Race,
    Reading,
    StepProfile,
    ThreadReading,
    TimingLab,
    Trial,
)
from core.config import RunConfig
from core.measure.environment import Environment
from core.measure.records import Record
from core.speed import rows as speed_rows
from core.speed.ladder import RUNGS, Climb, Climbed, Result, Roofline, Rung

HERE = Environment(
    device="cpu",
    device_name="A processor",
    backend="CPU",
    threads=2,
    torch="2.15.0",
    python="3.11.7",
    system="Linux x86_64",
)
CARD = replace(HERE, device="cuda", device_name="Testing card", backend="CUDA")
PAIR = (
    Candidate("cpu", "CPU", "CPU, 2 threads", 2),
    Candidate("cuda", "CUDA", "Testing card", 2),
)
DATE = "2026-11-20T10:00:00+00:00"
RACE = Race(
    PAIR,
    (HERE, CARD),
    RunConfig(model="ann", epochs=1),
    10,
    3,
    tuple(
        Trial(
            c,
            repeat,
            10,
            1.0 + repeat - 0.5 * c,
            640,
            0.1,
            1000,
            5.0 if c else None,
            (),
        )
        for repeat in range(4)
        for c in (0, 1)
    ),
    (),
    DATE,
)
MAP = Crossover(
    PAIR, (HERE, CARD), (Cell(32, 16, (1.0, 2.0), (3.0, 4.0)),), 72, 10.0, "", DATE
)
LAB = TimingLab(
    "cuda",
    4096,
    tuple(Reading(way, (9.0, 1.0, 2.0, 3.0)) for way in WAYS),
    (ThreadReading(32, 1, (0.1, 0.2, 0.3)), ThreadReading(32, 2, (0.4, 0.5, 0.6))),
    CARD,
    HERE,
    DATE,
)
PARTED = StepProfile(
    "memory",
    {part: (0.1, 0.2, 0.3, 0.4) for part in PARTS},
    (0.5, 1.0, 1.5, 2.0),
    (0.4, 0.9, 1.4, 1.9),
    RunConfig(),
    CARD,
    DATE,
)
EPOCHS = {  # seconds of one, and of the rung that it changes
    "textbook": (4.0, "", 0.0),
    "two_workers": (8.0, "textbook", 4.0),
    "four_workers": (8.0, "textbook", 4.0),
    "decoded_once": (1.0, "textbook", 4.0),
    "no_waiting": (1.0, "decoded_once", 1.0),
    "fused": (0.8, "no_waiting", 1.0),
    "larger_batch": (0.4, "fused", 0.8),
    "half_precision": (0.3, "larger_batch", 0.4),
}


def rung_result(rung: Rung) -> Result:
    """What a machine without an accelerator and without a compiler finds."""
    if rung.name not in EPOCHS:
        message = rung.obstacle("CPU", "ann")
        if message:
            return Result(rung.name, "", applies=False, message=message)
        return Result(rung.name, "half_precision", message="There is no compiler.")
    seconds, base, before = EPOCHS[rung.name]
    return Result(
        rung.name,
        base,
        (seconds,) * 3,
        (before,) * 3 if base else (),
        12_000,
        188,
        0.1,
        2_000_000,
        860,
        1000,
        kept="workers" not in rung.name,
    )


CLIMBED = Climbed(
    Climb("sprites", "ann", "cpu", 3, 60_000),
    Roofline(5e5, 792.0, 4e6, {"float32": (1e11, 1e11)}, (2e10,), (8e10,)),
    tuple(map(rung_result, RUNGS)),
    HERE,
    DATE,
)
SECTIONS = {
    "races": (RACE, restore.race_to_json(RACE)),
    "crossovers": (MAP, asdict(MAP)),
    "labs": (LAB, asdict(LAB)),
    "breakdowns": (PARTED, restore.breakdown_to_json(PARTED)),
    "climbs": (CLIMBED, asdict(CLIMBED)),
}


def test_every_row_has_all_it_is_read_with():
    """n, median, spread, device, torch, threads and date, in all kinds."""
    rows = [
        *flat.of_race(RACE),
        *flat.of_crossover(MAP),
        *flat.of_lab(LAB),
        *flat.of_breakdown([PARTED]),
        *speed_rows.of_climb(CLIMBED),
    ]
    for row in rows:
        for name in ("device_name", "torch", "threads", "date", "n"):
            assert row[name]
        assert row["least_seconds"] <= row["median_seconds"] <= row["most_seconds"]
    assert json.loads(json.dumps(rows)) == rows


def test_a_race_has_its_warm_up_apart():
    """Median and spread are of the counted heats; the warm-up has its own row."""
    rows = {(r["contender"], r["what"]): r for r in flat.of_race(RACE)}
    training = rows["CPU, 2 threads", "training"]
    assert (training["median_seconds"], training["n"]) == (3.0, 3)
    assert (training["least_seconds"], training["most_seconds"]) == (2.0, 4.0)
    assert training["samples_per_second"] == pytest.approx(640 / 3)
    assert training["joules_a_heat"] is None
    assert rows["Testing card", "training"]["joules_a_heat"] == 5.0
    assert rows["CPU, 2 threads", "training, warm-up"]["median_seconds"] == 1.0


@pytest.mark.parametrize("section", SECTIONS)
def test_what_is_recorded_comes_back(section):
    """Through JSON and a record, every section is what it was."""
    measured, as_json = SECTIONS[section]
    text = json.dumps({section: [as_json]})
    record = Record("Testing card", DATE, json.loads(text))
    (found,), problem = restore.recorded(record, section)
    assert not problem
    rows = {"races": flat.of_race, "labs": flat.of_lab}.get(section)
    if rows is not None:
        assert rows(found) == rows(measured)
    else:
        assert found == measured


@pytest.mark.parametrize("section", SECTIONS)
@pytest.mark.parametrize("damage", [{}, 3, {"candidates": []}, None])
def test_damage_is_a_sentence(section, damage):
    """A section that is not what it should be is left out, and said to be."""
    record = Record("Cut card", DATE, {section: [damage]})
    found, problem = restore.recorded(record, section)
    assert found == []
    assert "Cut card, recorded 2026-11-20" in problem


def test_a_record_without_a_section_is_no_damage():
    """Older records know nothing of races."""
    assert restore.recorded(Record("A card", DATE, {}), "races") == ([], "")


def test_a_failure_is_recorded_too():
    """Who did not come to the end has its reason in the record."""
    failed = Race(
        *[*vars(RACE).values()][:6], (CandidateFailure(1, "no memory"),), DATE
    )
    again = restore.race_from_json(json.loads(json.dumps(restore.race_to_json(failed))))
    assert again.failures == failed.failures


def test_a_climb_has_a_row_for_each_rung_that_was_measured():
    """With what it is compared with, and the gains up to it."""
    rows = {row["rung"]: row for row in speed_rows.of_climb(CLIMBED)}
    assert set(rows) == set(EPOCHS)
    assert rows["half_precision"]["speedup_over_first"] == pytest.approx(40 / 3)
    assert rows["fused"]["compared_with"] == "no_waiting"
    assert rows["textbook"]["speedup_over_first"] == 1
