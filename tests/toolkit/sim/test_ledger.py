import inspect
from collections.abc import Callable

import pytest
import torch

from to_device.sim import ledger

Use = Callable[[torch.Tensor], object]
WAITS: dict[str, tuple[Use, int, int]] = {  # how often, and the bytes that are fetched
    "item": (lambda x: x.sum().item(), 1, 4),
    "equal": (lambda x: torch.equal(x, x.clone()), 1, 1),
    "nonzero": (lambda x: x[x > 1], 1, 4),
    "masked_select": (lambda x: x.masked_select(x > 1), 1, 4),
    "masked_fill_": (lambda x: x.masked_fill(x > 1, x[0]), 1, 4),
    "unique": (lambda x: x.unique(), 1, 8),
    "bincount": (lambda x: x.long().bincount(), 2, 16),
    "histc": (lambda x: x.histc(4), 2, 8),
    "repeat_interleave": (lambda x: x.repeat_interleave(x.long()), 2, 9),
    "normal": (lambda x: torch.normal(x, x), 2, 2),
    "linalg": (lambda x: torch.linalg.svd(x.view(2, 2)), 2, 5),
    "linalg_lstsq": (lambda x: torch.linalg.lstsq(x.view(2, 2), x[:2, None]), 1, 1),
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
        (lambda x: torch.equal(x, x[:2]), 0),
        (lambda x: torch.equal(x, x), 0),
        (lambda x: x.masked_fill(x > 1, 0.0), 0),
        (lambda x: x.histc(4, 0, 3), 0),
        (lambda x: torch.normal(x, 1.0), 0),
        (lambda x: x.repeat_interleave(x.long(), output_size=6), 0),
        (lambda x: x.repeat_interleave(2), 0),
    ],
)
def test_whether_the_host_waits_for_a_size(use: Use, times: int) -> None:
    x = torch.arange(4.0).to("sim")
    with ledger.counting() as counts:
        use(x)
    assert sum(counts.waits.values()) == times


LATER = torch.__version__ >= "2.15"  # uses a number without a copy to the device
PLACES, MASK = torch.tensor([0, 2]), torch.tensor([True, False, True, True])


@pytest.mark.parametrize(
    ("use", "waits", "sent", "fetched"),
    [  # as on an H100
        (lambda x: x.__setitem__(x > 1, 0.0), 0, 0, 0),
        (lambda x: x.__setitem__((x[:, 0] > 1, 0), 7), 0, 0, 0),
        (lambda x: x.__setitem__(x > 1, torch.tensor(1.0)), 0, 0, 0),
        (lambda x: x.__setitem__(x > 1, x[1, 0].clone()), 1, 0, 4),
        (lambda x: x.__setitem__(0, 5), 0, 0, 0),
        (lambda x: x.__setitem__((0, 0), 5.0), not LATER, 4 * (not LATER), 0),
        (lambda x: x[PLACES], 1, 16, 0),
        (lambda x: x[[0, 2]], 1, 16, 0),
        (lambda x: x[MASK], 0, 24, 0),
        (lambda x: x.index_put_((PLACES,), x[:2].clone()), 1, 16, 0),
        (lambda x: x.index_put_((PLACES,), torch.tensor(1.0)), 2, 20, 0),
        (lambda x: x.index_put_((x > 1,), torch.tensor(1.0), True), 2, 4, 4),
    ],
)
def test_indices_and_numbers_of_the_host(
    use: Use, waits: int, sent: int, fetched: int
) -> None:
    x = torch.arange(4.0)[:, None].to("sim")
    with ledger.counting() as counts:
        use(x)
    assert sum(counts.waits.values()) == waits
    assert ledger.total(counts.copied, ledger.TO_DEVICE) == sent
    assert ledger.total(counts.copied, ledger.TO_HOST) == fetched


@pytest.mark.parametrize(
    ("non_blocking", "sent", "fetched"), [(False, 8, 16), (True, 16, 8)]
)
def test_a_blocking_copy_converts_on_the_host(
    non_blocking: bool, sent: int, fetched: int
) -> None:
    with ledger.counting() as counts:
        x = torch.ones(4).to("sim", torch.float16, non_blocking=non_blocking)
        x.float().to("cpu", torch.float16, non_blocking=non_blocking)
    assert ledger.total(counts.copied, ledger.TO_DEVICE) == sent
    assert ledger.total(counts.copied, ledger.TO_HOST) == fetched


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
