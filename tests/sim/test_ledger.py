"""Each copy and each wait is counted at the line that caused it."""

import inspect
from collections.abc import Callable

import pytest
import torch

from core.sim import ledger

Use = Callable[[torch.Tensor], object]
WAITS: dict[str, tuple[Use, int, int]] = {  # how often, and the bytes that are fetched
    "item": (lambda x: x.sum().item(), 1, 4),
    "equal": (lambda x: torch.equal(x, x), 1, 1),
    "nonzero": (lambda x: x[x > 1], 1, 4),
    "masked_select": (lambda x: x.masked_select(x > 1), 1, 4),
    "unique": (lambda x: x.unique(), 1, 8),
    "bincount": (lambda x: x.long().bincount(), 2, 16),
    "repeat_interleave": (lambda x: x.repeat_interleave(x.long()), 2, 9),
    "copy to host": (lambda x: x.tolist(), 1, 16),
    "synchronize": (lambda _: torch.accelerator.synchronize(), 1, 0),
}


@pytest.mark.parametrize("why", WAITS)
def test_a_wait_is_counted_at_its_line_with_the_bytes_it_fetches(why: str) -> None:
    x = torch.arange(4.0).to("sim")
    use, times, size = WAITS[why]
    with ledger.counting() as counts:
        use(x)
    line = use.__code__.co_firstlineno
    assert counts.waits == {(why, __file__, line): times}
    assert ledger.total(counts.copied, ledger.TO_HOST) == size


@pytest.mark.parametrize(
    ("use", "times"),
    [
        (lambda x: x.nonzero(), 1),
        (lambda x: torch.outer(x, x)[x > 1, x > 1], 2),
        (lambda x: x.index_put((x > 1,), x[:2]), 1),
        (lambda x: x[x.long()], 0),
        pytest.param(
            lambda x: x.__setitem__(x > 1, 0.0),  # is masked_fill_
            0,
            marks=pytest.mark.skipif(
                torch.__version__ < "2.15", reason="this torch copies the number first"
            ),
        ),
        (lambda x: torch.equal(x, x[:2]), 0),
        (lambda x: x.repeat_interleave(x.long(), output_size=6), 0),
        (lambda x: x.repeat_interleave(2), 0),
    ],
)
def test_whether_the_host_waits_for_a_size(use: Use, times: int) -> None:
    x = torch.arange(4.0).to("sim")
    with ledger.counting() as counts:
        use(x)
    assert sum(counts.waits.values()) == times


def test_copies_are_counted_with_their_bytes() -> None:
    with ledger.counting() as counts:
        x = torch.zeros(3, 4).to("sim")
        x.clone()
        x.double().cpu()
    line = inspect.currentframe().f_lineno - 3
    assert counts.copied[ledger.Event(ledger.TO_DEVICE, __file__, line)] == 48
    assert counts.copied[ledger.Event(ledger.TO_HOST, __file__, line + 2)] == 96
    assert ledger.total(counts.copies, ledger.TO_DEVICE) == 1


def test_what_does_not_wait() -> None:
    x = torch.ones(4, 4, device="sim", requires_grad=True)
    with ledger.counting() as counts:
        (x @ x).relu().sum().backward()
        x.t()[0].view(-1)
    assert not counts.waits
    assert counts.operations["mm"] == 3
    assert "view" not in counts.operations  # nothing is computed
