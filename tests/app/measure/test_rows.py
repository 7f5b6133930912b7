import json

import pytest

from tests.app import samples
from tests.app.samples import CLIMBED, EPOCHS

MEASURED = (
    *(
        samples.RACE,
        samples.CROSSOVER,
        samples.TIMING,
        samples.PROFILE,
        samples.CLIMBED_ON_CPU,
    ),
    *(samples.LOADER, samples.MEMORY, samples.VECTORIZED, samples.COPIES),
    *(samples.MEMORY_ON_CPU, samples.COPIES_ON_CPU),
)


def test_every_row_has_all_it_is_read_with():
    rows = [row for result in MEASURED for row in result.rows()]
    for row in rows:
        for name in ("device_name", "torch", "threads", "date"):
            assert row[name]
        if row["device"] == "sim":
            assert not any("second" in column for column in row)
            continue
        assert row["n"]
        assert row["least_seconds"] <= row["median_seconds"] <= row["most_seconds"]
    assert json.loads(json.dumps(rows)) == rows


def test_a_climb_has_a_row_for_each_rung_that_was_measured():
    *rungs, direct = CLIMBED.rows()
    rows = {row["rung"]: row for row in rungs}
    assert set(rows) == set(EPOCHS)
    assert rows["half_precision"]["speedup"] == pytest.approx(4 / 3)
    assert rows["fused"]["compared_with"] == "no_waiting"
    assert rows["textbook"]["speedup"] is None
    assert (direct["rung"], direct["compared_with"]) == ("half_precision", "textbook")
    names = ("speedup_least", "speedup", "speedup_most")
    assert [direct[name] for name in names] == pytest.approx([13, 40 / 3, 14])
