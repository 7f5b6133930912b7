import pytest
import torch
from torch import Tensor

from core import models
from core.config import FAST, IMAGE_MODELS, RunConfig

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


@pytest.mark.parametrize("changes", [{}, FAST["ann"], FAST["cnn"]])
@both
def test_a_runs_model_has_the_names_and_weights_of_the_plain_one(
    name: str, changes: dict, pixels: Tensor
) -> None:
    config = RunConfig(**changes | {"model": name})
    torch.manual_seed(0)
    plain = models.build(name).state_dict()
    torch.manual_seed(0)
    model = models.of_run(config, pixels)
    weights = model.state_dict()
    assert list(weights) == list(plain)
    changed = [key for key in plain if not torch.equal(plain[key], weights[key])]
    whitened = config.normalize and name == "cnn"
    assert changed == ["layers.0.0.weight"] * whitened
    assert isinstance(model, models.Tuned) == bool(changes)
    for inputs in (pixels, pixels / 255):
        assert model(inputs).dtype == torch.float32


@both
def test_in_a_test_the_mirror_image_has_the_logits_of_its_image(
    name: str, pixels: Tensor
) -> None:
    model = models.of_run(RunConfig(model=name, mirror=True)).eval()
    mirrored = model.layers(pixels.flip(-1) / 255)
    expected = (model.layers(pixels / 255) + mirrored) / 2
    torch.testing.assert_close(model(pixels), expected)
    torch.testing.assert_close(model(pixels.flip(-1)), expected)
    model.train()
    assert not torch.equal(model(pixels), model(pixels.flip(-1)))


def test_a_device_that_only_emulates_bfloat16_computes_in_float32(
    monkeypatch: pytest.MonkeyPatch, pixels: Tensor
) -> None:
    def logits(half: bool, has_it: bool) -> Tensor:
        monkeypatch.setattr(models, "has_bfloat16", lambda _: has_it)
        torch.manual_seed(0)
        return models.of_run(RunConfig(half=half))(pixels)

    expected = logits(half=False, has_it=True)
    assert torch.equal(logits(half=True, has_it=False), expected)
    rounded = logits(half=True, has_it=True)
    assert not torch.equal(rounded, expected)
    torch.testing.assert_close(rounded, expected, atol=0.02, rtol=0)


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
