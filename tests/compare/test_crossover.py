"""core.compare.crossover: the map of who is faster."""

import pytest
import torch

from core.compare import candidates, crossover
from core.compare.results import BATCH_SIZES, WIDTHS
from core.errors import CancelledError
from core.watch import Watch

ONE = candidates.cpu(1)
PAIR = candidates.tell_apart(ONE, ONE)
SMALL = {"widths": (32, 64), "batch_sizes": (16, 32)}

pytestmark = pytest.mark.usefixtures("one_thread")


def test_every_cell_of_a_small_map_is_measured():
    """Each is reported as soon as it is known, with as many readings of both."""
    reported = []
    found = crossover.measure(PAIR, 60, Watch(reported.append), **SMALL)
    assert tuple(reported) == found.cells
    assert {(c.width, c.batch_size) for c in found.cells} == {
        *((32, 16), (32, 32), (64, 16), (64, 32))
    }
    for cell in found.cells:
        assert len(cell.first) == len(cell.second) == crossover.REPEATS
        assert min(cell.first + cell.second) > 0
    assert found.planned == 4
    assert not found.stopped


def test_the_order_is_coarse_to_fine_and_complete():
    """Corners come first, every cell comes once, and a level begins with the cheap."""
    plan = crossover.coarse_to_fine(WIDTHS, BATCH_SIZES)
    assert len(plan) == len(set(plan)) == 72
    assert plan[0] == (32, 16)
    assert set(plan[:9]) == {(w, b) for w in (32, 512, 4096) for b in (16, 256, 4096)}


def test_the_budget_ends_it():
    """Without time there is no cell, and none that is cut off."""
    found = crossover.measure(PAIR, 0.0, **SMALL)
    assert found.cells == ()
    assert found.planned == 4


def test_what_does_not_fit_leaves_out_all_that_is_larger(monkeypatch):
    """The smaller cells stay, the reason is kept, and no larger one is tried."""
    tried = []
    real = crossover.training_step

    def training_step(width, batch_size, candidate):
        tried.append((width, batch_size))
        if width == 64:
            raise torch.OutOfMemoryError
        return real(width, batch_size, candidate)

    monkeypatch.setattr(crossover, "training_step", training_step)
    found = crossover.measure(PAIR, 60, **SMALL)
    assert {cell.width for cell in found.cells} == {32}
    assert "width 64, batch size 16" in found.stopped
    assert (64, 32) not in tried


def test_it_can_be_cancelled():
    """Cancelling ends it between two readings."""
    with pytest.raises(CancelledError):
        crossover.measure(PAIR, 60, watch=Watch(cancelled=lambda: True), **SMALL)


def test_a_step_trains():
    """What a cell times changes the weights of an MLP of the cell's width."""
    step = crossover.training_step(48, 16, ONE)
    names = step.__code__.co_freevars
    model = step.__closure__[names.index("model")].cell_contents
    before = model[0].weight.detach().clone()
    step()
    assert model[0].weight.shape == (48, 784)
    assert not torch.equal(before, model[0].weight)
