"""Autocast: products in 16 bits, losses in 32."""

import pytest
import torch
from torch import nn


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_products_are_in_16_bits_and_losses_in_32(dtype: torch.dtype) -> None:
    layer, inputs = nn.Linear(4, 3).to("sim"), torch.rand(5, 4, device="sim")
    with torch.autocast("sim", dtype=dtype):
        outputs = layer(inputs)
        loss = nn.functional.cross_entropy(outputs, torch.zeros(5, 3, device="sim"))
    loss.backward()
    assert (outputs.dtype, loss.dtype) == (dtype, torch.float32)
    assert layer.weight.grad.dtype == torch.float32


def test_a_scaler_scales() -> None:
    layer, scaler = nn.Linear(4, 1).to("sim"), torch.amp.GradScaler("sim")
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    before = layer.weight.detach().clone()
    scaler.scale(layer(torch.ones(2, 4, device="sim")).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert not torch.equal(before, layer.weight)
