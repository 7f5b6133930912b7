import gc
import threading
from collections.abc import Callable
from contextlib import nullcontext

import pytest
import torch
from torch import Tensor, nn

from to_device.sim import ledger, memory, queue

WIDTH = 8


def network(kind: str) -> nn.Module:
    if kind == "ann":
        first: list[nn.Module] = [nn.Flatten(), nn.Linear(64, WIDTH), nn.Dropout()]
    else:
        first = [nn.Conv2d(1, WIDTH, 8), nn.BatchNorm2d(WIDTH), nn.Flatten()]
    return nn.Sequential(*first, nn.ReLU(), nn.Linear(WIDTH, 3))


def losses(kind: str, fused: bool, queued: bool) -> list[float]:
    torch.manual_seed(0)
    model = network(kind).to("sim")
    images, labels = torch.rand(80, 1, 8, 8).to("sim"), torch.arange(80).to("sim") % 3
    optimizer = torch.optim.Adam(model.parameters(), fused=fused)
    values = []
    with queue.working() if queued else nullcontext():
        for batch, targets in zip(images.split(8), labels.split(8), strict=True):
            loss = nn.functional.cross_entropy(model(batch), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            values.append(loss.detach())
    return [loss.item() for loss in values]


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("kind", ["ann", "cnn"])
def test_training_gives_the_same_digits(kind, fused):
    assert losses(kind, fused, queued=True) == losses(kind, fused, queued=False)


def test_a_call_returns_before_its_work_is_done():
    with queue.working():
        x, gate = torch.eye(4).to("sim"), threading.Event()
        done = torch.Event(enable_timing=True)
        queue.put(gate.wait)  # the device does nothing until the gate is open
        y = x @ x + 1
        y.add_(1)
        done.record()
        assert not done.query()
        with pytest.raises(RuntimeError, match="must be completed"):
            done.elapsed_time(done)
        gate.set()
        assert y.tolist() == (torch.eye(4) + 2).tolist()
        assert done.query()
        assert done.elapsed_time(done) == 0


WAITING: list[Callable[[Tensor], object]] = [
    lambda x: x.sum().item(),
    lambda x: x[x > 1],
    lambda x: x.cpu(),
    lambda x: x.copy_(torch.rand(4)),
    lambda _: torch.accelerator.synchronize(),
]


@pytest.mark.parametrize("use", WAITING)
def test_the_host_waits_where_a_wait_is_counted(use):
    with queue.working():
        x = torch.arange(4.0).to("sim")
        done = torch.Event()
        queue.put(lambda: threading.Event().wait(0.05))
        done.record()
        with ledger.counting() as counts:
            use(x)
        assert counts.waits.total() == 1
        assert done.query()


def test_an_error_is_raised_at_the_next_wait():
    with queue.working():
        table = nn.Embedding(3, 2).to("sim")
        rows = table(torch.tensor([7]).to("sim"))
        with pytest.raises(IndexError):
            rows.sum().item()
        assert table(torch.tensor([2]).to("sim")).sum().item() is not None


def test_a_wrong_shape_is_refused_at_once():
    with queue.working():
        x = torch.rand(2, 3).to("sim")
        with pytest.raises(RuntimeError, match="cannot be multiplied"):
            x @ x


def test_a_number_of_the_hosts_may_change_after_the_call():
    with queue.working():
        x, number = torch.ones(3).to("sim"), torch.tensor(2.0)
        product = x * number
        number.zero_()
        assert product.tolist() == [2, 2, 2]


def test_a_pinned_copy_that_blocks_nothing_comes_later():
    with queue.working():
        source = torch.arange(3.0).pin_memory()
        gate = threading.Event()
        queue.put(gate.wait)
        x = source.to("sim", non_blocking=True)
        back = x.to("cpu", non_blocking=True)
        gate.set()
        torch.accelerator.synchronize()
        assert back.tolist() == [0, 1, 2]


def test_memory_is_free_afterwards():
    gc.collect()
    before = memory.allocated
    losses("ann", fused=True, queued=True)
    gc.collect()
    assert memory.allocated == before
