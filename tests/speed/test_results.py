"""core.speed.results: what is measured on which machine, and what the figures say."""

import pytest

from core.speed import results
from core.speed.results import LoaderCell
from tests.samples import machine


def cell(workers, *seconds, pinned=False, batch_size=64):
    return LoaderCell(batch_size, workers, pinned, 0.1, 1000, seconds)


@pytest.mark.parametrize(("cores", "most"), [(1, 4), (2, 4), (16, 32), (128, 32)])
def test_there_are_more_workers_than_cores_but_not_too_many(cores, most):
    """None, the advised ones and twice the cores are tried, up to 32 processes."""
    workers = results.loader_plan(machine("CPU", cores=cores)).workers
    assert {0, results.FOR_A_GPU, results.per_core(cores)} <= set(workers)
    assert workers == tuple(sorted(set(workers)))
    assert workers[-1] == most


@pytest.mark.parametrize(
    ("backend", "pinned"), [("CPU", 1), ("MPS", 1), ("CUDA", 2), ("ROCm", 2)]
)
def test_pinned_memory_is_measured_where_it_helps_copies(backend, pinned):
    """Without such an accelerator there are half as many cells."""
    plan = results.loader_plan(machine(backend))
    assert len(plan.pinned) == pinned
    assert plan.cells == len(plan.batch_sizes) * len(plan.workers) * pinned


def test_a_rate_is_that_of_the_median_reading():
    """1,000 samples in 1, 2 and 4 seconds are 500 samples/s, 250 to 1,000."""
    found = cell(0, 2.0, 1.0, 4.0)
    assert found.samples_per_second == 500
    assert found.spread == (250, 1000)


def test_overlapping_spreads_are_too_close_to_tell_apart():
    """Cells are told apart where every reading of one is above those of the other."""
    slow, between, fast = cell(0, 3, 2.5), cell(1, 2.6, 1.5), cell(2, 1.4, 1.0)
    assert slow.as_fast_as(between)
    assert between.as_fast_as(slow)
    assert not fast.as_fast_as(between)
    assert not between.as_fast_as(fast)


def test_pinning_compares_cells_that_differ_in_nothing_else():
    """A pinned cell without its counterpart says nothing."""
    cells = [
        cell(0, 2.0),
        cell(0, 1.0, pinned=True),
        cell(1, 1.0, pinned=True),
        cell(0, 1.0, batch_size=256),
    ]
    assert results.pinning(cells) == [2.0]
    assert results.pinning(cells[2:]) == []


def test_advice_is_looked_up_at_the_textbook_batch_size():
    """Cells of other batch sizes or of pinned memory are not taken for it."""
    cells = [cell(2, 1.0, batch_size=256), cell(2, 1.0, pinned=True), cell(2, 2.0)]
    assert results.at_textbook_batch(cells) == {2: cells[2]}
    assert results.fastest(cells) in cells[:2]
