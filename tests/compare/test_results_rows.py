"""core.compare.results: rows that stand by themselves, and records that come back."""

import json
from dataclasses import asdict

import pytest

from core.compare.results import CandidateFailure, Race, StepProfile
from core.measure.records import Record, from_json
from tests.samples import CLIMBED, CROSSOVER, DATE, EPOCHS, PROFILE, RACE, TIMING

SECTIONS = {
    "races": (RACE, asdict(RACE.without_losses())),
    "crossovers": (CROSSOVER, asdict(CROSSOVER)),
    "labs": (TIMING, asdict(TIMING)),
    "breakdowns": (PROFILE, asdict(PROFILE)),
    "climbs": (CLIMBED, asdict(CLIMBED)),
}


def test_every_row_has_all_it_is_read_with():
    """n, median, spread, device, torch, threads and date, in all kinds."""
    rows = [
        row
        for each in (RACE, CROSSOVER, TIMING, PROFILE, CLIMBED)
        for row in each.rows()
    ]
    for row in rows:
        for name in ("device_name", "torch", "threads", "date", "n"):
            assert row[name]
        assert row["least_seconds"] <= row["median_seconds"] <= row["most_seconds"]
    assert json.loads(json.dumps(rows)) == rows


def test_a_race_has_its_warm_up_apart():
    """Median and spread are of the counted trials; the warm-up has its own row."""
    rows = {(r["contender"], r["what"]): r for r in RACE.rows()}
    training = rows["CPU (2 threads)", "training"]
    assert (training["median_seconds"], training["n"]) == (3.0, 3)
    assert (training["least_seconds"], training["most_seconds"]) == (2.0, 4.0)
    assert training["samples_per_second"] == pytest.approx(640 / 3)
    assert training["joules_a_heat"] is None
    assert rows["Testing card", "training"]["joules_a_heat"] == 5.0
    assert rows["CPU (2 threads)", "training, warm-up"]["median_seconds"] == 1.0


@pytest.mark.parametrize("section", SECTIONS)
def test_what_is_recorded_comes_back(section):
    """Through JSON and a record, every section is what it was."""
    measured, as_json = SECTIONS[section]
    text = json.dumps({section: [as_json]})
    record = Record("Testing card", DATE, json.loads(text))
    (found,), problem = record.section(section, type(measured))
    assert not problem
    assert found.rows() == measured.rows()
    if section != "races":  # whose losses are not recorded
        assert found == measured


@pytest.mark.parametrize("section", SECTIONS)
@pytest.mark.parametrize("damage", [{}, 3, {"candidates": []}, None])
def test_damage_is_a_sentence(section, damage):
    """A section that is not what it should be is left out, and said to be."""
    record = Record("Cut card", DATE, {section: [damage]})
    found, problem = record.section(section, type(SECTIONS[section][0]))
    assert found == []
    assert "Cut card, recorded 2026-11-20" in problem


def test_a_profile_that_lacks_a_part_is_damaged():
    """Whoever draws it relies on all of them."""
    found = asdict(PROFILE)
    del found["parts"]["copy"]
    record = Record("Cut card", DATE, {"breakdowns": [found]})
    profiles, problem = record.section("breakdowns", StepProfile)
    assert (profiles, bool(problem)) == ([], True)


def test_a_record_without_a_section_is_no_damage():
    """Older records know nothing of races."""
    assert Record("A card", DATE, {}).section("races", Race) == ([], "")


def test_a_failure_is_recorded_too():
    """Who did not come to the end has its reason in the record."""
    failed = Race(
        *[*vars(RACE).values()][:6], (CandidateFailure(1, "no memory"),), DATE
    )
    again = from_json(Race, json.loads(json.dumps(asdict(failed.without_losses()))))
    assert again.failures == failed.failures


def test_a_climb_has_a_row_for_each_rung_that_was_measured():
    """With what it is compared with; the last row is the direct comparison."""
    *rungs, direct = CLIMBED.rows()
    rows = {row["rung"]: row for row in rungs}
    assert set(rows) == set(EPOCHS)
    assert rows["half_precision"]["speedup"] == pytest.approx(4 / 3)
    assert rows["fused"]["compared_with"] == "no_waiting"
    assert rows["textbook"]["speedup"] is None
    assert (direct["rung"], direct["compared_with"]) == ("half_precision", "textbook")
    names = ("speedup_least", "speedup", "speedup_most")
    assert [direct[name] for name in names] == pytest.approx([13, 40 / 3, 14])
