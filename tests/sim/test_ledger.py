"""Each copy and each wait is counted at the line that caused it."""

import inspect
from collections.abc import Callable

import pytest
import torch

from core.sim import ledger

WAITS: dict[str, Callable[[torch.Tensor], object]] = {
    "item": lambda x: x.sum().item(),
    "equal": lambda x: torch.equal(x, x),
    "nonzero": lambda x: x.nonzero(),
    "masked_select": lambda x: x.masked_select(x > 1),
    "unique": lambda x: x.unique(),
    "copy to host": lambda x: x.tolist(),
    "synchronize": lambda _: torch.accelerator.synchronize(),
}


@pytest.mark.parametrize("why", WAITS)
def test_a_wait_is_counted_at_its_line(why: str) -> None:
    x = torch.arange(4.0).to("sim")
    with ledger.counting() as counts:
        WAITS[why](x)
    assert {event.what for event in counts.waits} == {why}
    line = WAITS[why].__code__.co_firstlineno
    assert {event[1:] for event in counts.waits} == {(__file__, line)}


@pytest.mark.parametrize("use", [bool, float, int, "{:.1f}".format])
def test_numbers_are_waited_for(use: Callable) -> None:
    x = torch.ones((), device="sim")
    with ledger.counting() as counts:
        use(x)
    assert ledger.total(counts.waits, "item") == 1


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
