import pytest
import torch

from core.lessons.compare import candidates, crossover, crossover_page
from core.lessons.compare.crossover_points import crossover_points
from core.lessons.compare.crossover_result import BATCH_SIZES, WIDTHS, Cell
from core.watch import Watch
from tests.figures import figures

ONE = candidates.cpu(1)
PAIR = candidates.tell_apart(ONE, ONE)
SMALL = {"widths": (32, 64), "batch_sizes": (16, 32)}

pytestmark = pytest.mark.usefixtures("one_thread")


def test_every_cell_of_a_small_map_is_measured():
    reported = []
    result = crossover.measure(PAIR, 60, Watch(reported.append), **SMALL)
    assert tuple(reported) == result.cells
    assert {(c.width, c.batch_size) for c in result.cells} == {
        *((32, 16), (32, 32), (64, 16), (64, 32))
    }
    for cell in result.cells:
        assert len(cell.first) == len(cell.second) == crossover.REPEATS
        assert min(cell.first + cell.second) > 0
    assert result.planned == 4
    assert not result.stopped


def test_the_order_is_coarse_to_fine_and_complete():
    plan = crossover.coarse_to_fine(WIDTHS, BATCH_SIZES)
    assert len(plan) == len(set(plan)) == 72
    assert plan[0] == (32, 16)
    assert set(plan[:9]) == {(w, b) for w in (32, 512, 4096) for b in (16, 256, 4096)}


def test_the_budget_ends_it():
    result = crossover.measure(PAIR, 0.0, **SMALL)
    assert result.cells == ()
    assert result.planned == 4


def test_what_does_not_fit_leaves_out_all_that_is_larger(monkeypatch):
    tried = []
    real = crossover.training_step

    def training_step(width, batch_size, candidate):
        tried.append((width, batch_size))
        if width == 64:
            raise torch.OutOfMemoryError
        return real(width, batch_size, candidate)

    monkeypatch.setattr(crossover, "training_step", training_step)
    result = crossover.measure(PAIR, 60, **SMALL)
    assert {cell.width for cell in result.cells} == {32}
    assert {"64", "16"} <= {*figures(result.stopped)}
    assert (64, 32) not in tried


def test_a_step_trains():
    step = crossover.training_step(48, 16, ONE)
    names = step.__code__.co_freevars
    model = step.__closure__[names.index("model")].cell_contents
    before = model[0].weight.detach().clone()
    step()
    assert model[0].weight.shape == (48, 784)
    assert not torch.equal(before, model[0].weight)


@pytest.mark.parametrize(
    ("cells", "line"),
    [
        ((Cell(64, 16, (1.0,), (2.0,)), Cell(64, 64, (2.0,), (1.0,))), [(5, 6)]),
        ((Cell(64, 16, (1.0,), (4.0,)), Cell(256, 16, (4.0,), (1.0,))), [(4, 7)]),
        ((Cell(64, 16, (1.0,), (2.0,)), Cell(64, 32, (1.0,), (2.0,))), []),
    ],
    ids=["along-batches", "along-widths", "one-always-wins"],
)
def test_the_line_of_equality_is_interpolated(cells, line):
    assert list(map(pytest.approx, crossover_points(cells))) == line


def test_the_map_guesses_its_blanks_and_hatches_its_ties():
    cells = (
        Cell(32, 16, (1.0,) * 6, (2.0,) * 6),
        Cell(4096, 4096, (2.0,) * 6, (1.0,) * 6),
        Cell(32, 4096, (1.0, 2.0) * 3, (2.0, 1.0) * 3),
    )
    rows = crossover_page.rows(cells)
    blanks = {
        (row["batch"], row["width"]): row["log2"]
        for row in rows
        if row["kind"] == "blank"
    }
    assert len(blanks) == crossover_page.PLANNED - len(cells)
    assert (blanks[5, 5], blanks[11, 12]) == (-1, 1)
    ties = {(r["batch"], r["width"]) for r in rows if r["kind"] == "tie"}
    assert ties == {(12, 5)}
