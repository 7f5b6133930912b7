"""The same batch on one rank, on two and on four."""

import pytest

from core.lessons.scale import cost
from core.lessons.scale.scale_result import Cost, Repeat, Step
from core.watch import Watch
from tests import samples


def test_each_number_of_ranks_is_timed_in_turn():
    told = []
    found = cost.measure("sprites", "ann", 64, Watch(report=told.append), repeats=2)
    assert [(s.ranks, s.threads) for s in found.steps] == cost.ways(found.cores)
    for each in found.steps:
        assert len(each.seconds) == 2
        assert len(each.silent) == (2 if each.ranks > 1 else 0)
    assert told[-1] == Repeat(cost.WARMUP + 2, cost.WARMUP + 2)
    assert [row["ranks"] for row in found.rows()] == [
        each.ranks for each in found.steps
    ]


def test_figures_add_up():
    one, two = Step(1, 1, (4.0, 6.0)), Step(2, 1, (3.0, 5.0), (2.0, 3.0))
    found = Cost("ann", 64, (one, two), 2, "gloo", samples.PROCESSOR, samples.DATE)
    assert found.speedup(two).ratio == 5 / 4  # as the bars have it
    assert found.speedup(two).interval == pytest.approx((6 / 5, 4 / 3))
    assert (one.exchange, two.exchange) == (0, 1.5)
    assert Step(2, 1, (1.0,), (2.0,)).exchange == 0
