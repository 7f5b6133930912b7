"""core.speed.results: every row says all that a figure has to be read with."""

import json

import pytest

from tests.samples import CARD, COPIES, DATE, LOADER, MEMORY, VECTORIZED


@pytest.mark.parametrize(
    ("rows", "count"),
    [
        (LOADER.rows(), 10),
        (MEMORY.rows(), 6),
        (VECTORIZED.rows(), 8),
        (COPIES.rows(), 6),
    ],
)
def test_every_row_says_how_it_was_measured(rows, count):
    """n, median, spread, device, torch, threads and date; the same columns in all."""
    assert len(rows) == count
    for row in rows:
        assert row["n"] >= 2
        assert row["least_seconds"] <= row["median_seconds"] <= row["most_seconds"]
        assert row["device_name"] == CARD.device_name
        assert row["torch"]
        assert row["threads"] >= 1
        assert row["date"] == DATE
    assert len({tuple(row) for row in rows if "numpy" not in row}) == 1
    assert json.loads(json.dumps(rows)) == rows


def test_rows_can_be_told_apart():
    """Settings stand in them under the names that torch has for them."""
    settings = {
        (row["what"], row["batch_size"], row["num_workers"], row["pin_memory"])
        for row in LOADER.rows()
    }
    assert len(settings) == 10
    assert len({r["way"] for r in MEMORY.rows()}) == 6
    assert {r["pieces"] for r in COPIES.rows()} == {
        *(1, 100, 10_000),
        None,
    }
