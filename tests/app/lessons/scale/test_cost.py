import pytest

from core.lessons.scale import cost
from core.lessons.scale.scale_result import Cost, Repeat, Step
from core.watch import Watch
from tests.app import samples


@pytest.mark.alone
@pytest.mark.slow
def test_the_numbers_of_ranks_are_timed_alternately():
    reports = []
    result = cost.measure("sprites", "ann", 64, Watch(report=reports.append), repeats=2)
    assert [(s.ranks, s.threads) for s in result.steps] == cost.setups_for(result.cores)
    for step in result.steps:
        assert len(step.seconds) == 2
        assert len(step.silent) == (2 if step.ranks > 1 else 0)
    assert reports[-1] == Repeat(cost.WARMUP + 2, cost.WARMUP + 2)
    assert [row["ranks"] for row in result.rows()] == [
        step.ranks for step in result.steps
    ]


def test_figures_add_up():
    single, pair = Step(1, 1, (4.0, 6.0)), Step(2, 1, (3.0, 5.0), (2.0, 3.0))
    both = Cost("ann", 64, (single, pair), 2, "gloo", samples.PROCESSOR, samples.DATE)
    assert both.speedup(pair).ratio == 5 / 4  # as the bars have it
    assert both.speedup(pair).interval == pytest.approx((6 / 5, 4 / 3))
    assert (single.exchange, pair.exchange) == (0, 1.5)
    assert Step(2, 1, (1.0,), (2.0,)).exchange == 0
