from dataclasses import replace

import pytest

from core.lessons.speed import loader_result
from core.lessons.speed.loader_page import Loader, against
from core.lessons.speed.loader_result import LoaderCell
from tests.app.samples import ACCURACIES, COPIES, LOADER, MEMORY, VECTORIZED, machine


def cell(workers, *seconds, pinned=False, batch_size=64):
    return LoaderCell(batch_size, workers, pinned, 0.1, 1000, seconds)


@pytest.mark.parametrize(
    ("backend", "cores", "most", "pinned"),
    [("CPU", 1, 4, 1), ("CPU", 16, 32, 1), ("MPS", 128, 32, 1), ("CUDA", 2, 4, 2)],
)
def test_there_are_more_workers_than_cores_and_pinning_where_it_helps(
    backend, cores, most, pinned
):
    plan = loader_result.loader_plan(machine(backend, cores=cores))
    advised = {loader_result.FOR_A_GPU, loader_result.per_core(cores)}
    assert {0, *advised} <= set(plan.workers)
    assert plan.workers == tuple(sorted(set(plan.workers)))
    assert (plan.workers[-1], len(plan.pinned)) == (most, pinned)
    assert plan.cells == len(plan.batch_sizes) * len(plan.workers) * pinned


def test_a_rate_is_that_of_the_median_reading():
    readings = cell(0, 2.0, 1.0, 4.0)
    assert readings.samples_per_second == 500
    assert readings.spread == (250, 1000)


def test_a_cell_is_as_much_faster_as_its_samples_come():
    slow, fast = cell(0, 3, 3, 3), replace(cell(2, 3, 2, 3), samples=2000)
    assert fast.over(slow).ratio == 2
    assert (fast.over(slow).winner, slow.over(fast).winner) == (1, 0)
    assert cell(0, 1.0).over(cell(1, 1.5), in_turn=False).winner is None


def test_sentences_and_chart_have_the_same_readings():
    lab = replace(
        LOADER,
        cells=(cell(0, 1, 1, 1), cell(2, 9, 9, 9), cell(0, 1, 1, batch_size=256)),
        direct=(cell(2, 2, 2, 2), cell(0, 4, 4, 4)),
    )
    assert lab.shown == (lab.direct[1], lab.direct[0], lab.cells[2])
    alone, two, other = lab.shown
    finding = Loader().finding(lab)
    assert (finding.right, lab.over(two, alone).n) == ((2,), 3)
    assert lab.over(other, alone).n == 0  # measured at another moment
    assert "%" not in against(two, lab), "it is the fastest"
    assert "%" in against(alone, lab)


def test_pinning_compares_cells_that_differ_in_nothing_else():
    cells = [
        cell(0, 2.0),
        cell(0, 1.0, pinned=True),
        cell(1, 1.0, pinned=True),
        cell(0, 1.0, batch_size=256),
    ]
    assert loader_result.pinning(cells) == [2.0]
    assert loader_result.pinning(cells[2:]) == []


def test_advice_is_looked_up_at_the_textbook_batch_size():
    cells = [cell(2, 1.0, batch_size=256), cell(2, 1.0, pinned=True), cell(2, 2.0)]
    assert loader_result.at_textbook_batch(cells) == {2: cells[2]}
    assert loader_result.fastest(cells) in cells[:2]


@pytest.mark.parametrize(
    ("lab", "settings"),
    [
        (LOADER, "what batch_size num_workers pin_memory"),
        (MEMORY, "way"),
        (VECTORIZED, "way points"),
        (COPIES, "way pieces"),
        (ACCURACIES, "way epoch"),
    ],
    ids=["loader", "memory", "vectorize", "copies", "accuracies"],
)
def test_every_row_says_how_it_was_measured(lab, settings):
    rows = lab.rows()
    values = {tuple(row[name] for name in settings.split()) for row in rows}
    assert len(values) == len(rows)
    assert len({tuple(row) for row in rows if "numpy" not in row}) == 1
