from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from to_device.sim import memory


def test_torch_accelerator_is_this_one() -> None:
    assert torch.accelerator.is_available()
    assert str(torch.accelerator.current_accelerator()) == "sim"
    assert torch.accelerator.device_count() == 1
    x = torch.ones(4, device="sim")
    assert torch.accelerator.memory_allocated() == memory.allocated > 0
    torch.accelerator.empty_cache()
    assert torch.sim.mem_get_info() == (memory.free(), memory.capacity)
    assert (x.is_sim, x.is_cuda, x.is_cpu) == (True, False, False)


def test_a_default_device_makes_new_tensors_there() -> None:
    with torch.device("sim"):
        assert torch.zeros(2).device.type == nn.Linear(2, 2).weight.device.type == "sim"
    assert torch.zeros(2).device.type == "cpu"
    torch.set_default_device("sim")
    try:
        assert torch.tensor([1, 2]).device.type == "sim"
    finally:
        torch.set_default_device(None)


def test_a_layer_of_meta_gets_its_memory_there() -> None:
    layer = nn.Linear(2, 2, device="meta").to_empty(device="sim")
    assert layer.weight.device.type == "sim"


def test_events_are_in_order() -> None:
    first, second = (torch.Event("sim", enable_timing=True) for _ in range(2))
    first.record()
    second.record()
    second.synchronize()
    assert second.query()
    assert first.elapsed_time(second) >= 0
    with pytest.raises(ValueError, match="created with argument 'enable_timing=True'"):
        first.elapsed_time(torch.Event("sim"))


def test_a_lazy_layer_moves_before_it_knows_its_size() -> None:
    layer = nn.LazyLinear(2).to("sim")
    assert layer(torch.ones(3, 5, device="sim")).shape == (3, 2)
    assert layer.weight.device.type == "sim"


HOOKS: dict[str, Callable[[torch.Tensor, torch.Tensor], Callable]] = {
    "a tensor's": lambda _, y: y.register_hook,
    "a leaf's": lambda x, _: x.register_hook,
    "after a gradient": lambda x, _: x.register_post_accumulate_grad_hook,
    "before a node": lambda _, y: y.grad_fn.register_prehook,
    "after a node": lambda _, y: y.grad_fn.register_hook,
}


@pytest.mark.parametrize("place", HOOKS)
def test_an_error_of_a_hook_reaches_the_caller(place: str) -> None:
    """The process doesn't end, and the device works on."""

    def hook(*_: torch.Tensor) -> None:
        raise ValueError("of the hook")

    x = torch.ones(3, device="sim", requires_grad=True)
    y = x * 2
    HOOKS[place](x, y)(hook)
    with pytest.raises(ValueError, match="of the hook"):
        y.sum().backward()
    torch.ones_like(x, requires_grad=True).sum().backward()


def test_an_error_of_a_recomputation_reaches_the_caller() -> None:
    layer, x = nn.Linear(512, 512).to("sim"), torch.ones(256, 512, device="sim")
    y = checkpoint(layer, x.requires_grad_(), use_reentrant=False)
    with memory.limited_to(memory.allocated), pytest.raises(torch.OutOfMemoryError):
        y.sum().backward()
    layer(x).sum().backward()
