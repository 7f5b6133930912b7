"""core.speed.rows: every row says all that a figure has to be read with."""

import json
from dataclasses import asdict

import pytest

from core.speed import rows
from core.speed.results import (
    ACCUMULATED,
    CHECKPOINTED,
    CPU,
    ITEM,
    NUMPY,
    ONCE,
    PYTHON,
    STEP,
    TORCH,
    Copied,
    CopiesLab,
    Fetched,
    LoaderCell,
    LoaderLab,
    LoaderPlan,
    MemoryCost,
    MemoryLab,
    NumpyEnvironment,
    Vectorized,
    VectorizeLab,
)
from tests.compare.test_rows import CARD

DATE = "2026-11-20T10:00:00+00:00"
LOADER = LoaderLab(
    LoaderPlan((64, 256), (0, 2, 4), (False, True)),
    tuple(
        LoaderCell(batch, workers, pinned, 0.1, 1024, (rate, rate * 1.1, rate * 0.9))
        for batch in (64, 256)
        for workers, rate in ((0, 0.04), (2, 0.02))
        for pinned in (False, True)
    ),
    ("4 workers at batch size 64 failed: no room.",),
    "sprites",
    2,
    10.0,
    CARD,
    DATE,
)
WAYS = (
    ("training", STEP, 40, 0.0),
    ("training", CHECKPOINTED, 20, 0.0),
    ("training", ACCUMULATED, 15, 1e-8),
    ("inference", "gradients", 35, 0.0),
    ("inference", "no_grad", 6, 0.0),
    ("inference", "inference_mode", 6, 0.0),
)
MEMORY = MemoryLab(
    tuple(
        MemoryCost(kind, name, (0.1, 0.11, 0.12), megabytes * 10**6, difference, 0.1)
        for kind, name, megabytes, difference in WAYS
    ),
    2048,
    4,
    256,
    16,
    CARD,
    DATE,
)
ON_CARD = "torch on CUDA"
TIMES = {PYTHON: (1e-6, 0.2), NUMPY: (3e-6, 0.02), TORCH: (9e-6, 8e-3)}
VECTORS = VectorizeLab(
    tuple(
        Vectorized(way, points, (seconds[i], seconds[i] * 1.1), 1e-7, "cpu")
        for i, points in enumerate((1, 100_000))
        for way, seconds in (TIMES | {ON_CARD: (4e-5, 1e-4)}).items()
    ),
    10,
    {
        PYTHON: CARD,
        NUMPY: NumpyEnvironment(**asdict(CARD), numpy="2"),
        TORCH: CARD,
        ON_CARD: CARD,
    },
    DATE,
)
COPIES = CopiesLab(
    tuple(Copied(n, 2**24, (1e-3 * n**0.5, 1.1e-3 * n**0.5)) for n in (1, 100, 10_000)),
    tuple(Fetched(way, 500, (t, t)) for way, t in ((ITEM, 0.1), (CPU, 0.1), (ONCE, 1))),
    CARD,
    DATE,
)


@pytest.mark.parametrize(
    ("rows", "count"),
    [
        (rows.of_loader(LOADER), 8),
        (rows.of_memory(MEMORY), 6),
        (rows.of_vectorize(VECTORS), 8),
        (rows.of_copies(COPIES), 6),
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
        (row["batch_size"], row["num_workers"], row["pin_memory"])
        for row in rows.of_loader(LOADER)
    }
    assert len(settings) == 8
    assert len({r["way"] for r in rows.of_memory(MEMORY)}) == 6
    assert {r["pieces"] for r in rows.of_copies(COPIES)} == {
        *(1, 100, 10_000),
        None,
    }
