import pytest
import torch
from torch import Tensor

from core import models
from core.config import IMAGE_MODELS

both = pytest.mark.parametrize("name", IMAGE_MODELS)


@pytest.fixture(scope="module")
def pixels() -> Tensor:
    """Noise: uint8 (5, 1, 28, 28)."""
    dice = torch.Generator().manual_seed(0)
    return torch.randint(256, (5, 1, 28, 28), generator=dice).byte()


@both
@pytest.mark.parametrize("n", [1, 5])
def test_ten_logits_an_image(name: str, n: int, pixels: Tensor) -> None:
    logits = models.build(name).eval()(pixels[:n])
    assert logits.shape == (n, 10)
    assert logits.dtype == torch.float32
    assert logits.isfinite().all()


@both
def test_pixels_and_floats_are_the_same(name: str, pixels: Tensor) -> None:
    model = models.build(name).eval()
    assert torch.equal(model(pixels), model(pixels / 255))


def test_frozen_parameters_are_not_counted() -> None:
    model = models.build("ann")
    last = list(model.parameters())[-2:]  # 64-10: 640 weights, 10 biases
    for parameter in last:
        parameter.requires_grad_(False)
    assert models.count_parameters(model) == 109_386 - 650


def test_a_number_for_a_number() -> None:
    model = models.build("simple")
    assert models.count_parameters(model) == 4_353
    for device in ("cpu", "meta"):
        outputs = model.to(device)(torch.zeros(5, 1, device=device))
        assert (outputs.shape, outputs.dtype) == ((5, 1), torch.float32)
        assert outputs.device.type == device
