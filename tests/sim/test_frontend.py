"""What programs ask of a device: torch.accelerator, torch.sim, events, defaults."""

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from core.sim import memory


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


def test_a_lazy_layer_moves_before_it_knows_its_size() -> None:
    layer = nn.LazyLinear(2).to("sim")
    assert layer(torch.ones(3, 5, device="sim")).shape == (3, 2)
    assert layer.weight.device.type == "sim"


def test_an_error_of_a_recomputation_reaches_the_caller() -> None:
    """Not the end of the process; the device works on."""
    layer, x = nn.Linear(512, 512).to("sim"), torch.ones(256, 512, device="sim")
    y = checkpoint(layer, x.requires_grad_(), use_reentrant=False)
    with memory.limited_to(memory.allocated), pytest.raises(torch.OutOfMemoryError):
        y.sum().backward()
    layer(x).sum().backward()
