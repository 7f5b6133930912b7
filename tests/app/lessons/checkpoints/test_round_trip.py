import io

import pytest
import safetensors.torch
import torch

from core import models, state_dict
from core.config import IMAGE_MODELS, RunConfig
from core.devices import other_than_cpu
from core.lessons.checkpoints import round_trip

pytestmark = pytest.mark.usefixtures("one_thread")


def saved(model: str) -> bytes:
    torch.manual_seed(1)
    return state_dict.save(models.build(model))


@pytest.mark.parametrize("model", IMAGE_MODELS)
def test_contents_are_those_of_the_model(model: str) -> None:
    expected = models.build(model).state_dict()
    infos = {info.name: info for info in round_trip.inspect(saved(model))}
    assert list(infos) == list(expected)
    for name, tensor in expected.items():
        assert infos[name].shape == tuple(tensor.shape)
        assert f"torch.{infos[name].dtype}" == str(tensor.dtype)
        assert infos[name].bytes == tensor.numel() * tensor.element_size()
        assert infos[name].device == "cpu"


def test_both_formats_hold_the_same() -> None:
    file = saved("cnn")
    zipped = torch.load(io.BytesIO(file), weights_only=True)
    safe = safetensors.torch.load(round_trip.to_safetensors(file))
    assert zipped.keys() == safe.keys()
    assert all(torch.equal(zipped[name], safe[name]) for name in safe)


@pytest.mark.parametrize("model", IMAGE_MODELS)
def test_a_round_trip_on_one_device_changes_nothing(model: str) -> None:
    config = RunConfig(task="sprites", model=model)
    trip = round_trip.measure(saved(model), config, "cpu", "cpu")
    assert (trip.greatest_difference, trip.differing_values) == (0.0, 0)
    assert trip.differing_predictions == 0
    assert trip.values == 10 * trip.images == 20_000


def test_a_rounded_file_is_seen() -> None:
    config = RunConfig(task="sprites")
    trip = round_trip.measure(saved("ann"), config, "cpu", "cpu", "float16")
    assert 0 < trip.greatest_difference < 0.1
    assert trip.differing_values > 10_000
    assert trip.bytes < 0.6 * len(saved("ann"))


@pytest.mark.gpu
def test_a_file_can_be_mapped_where_its_device_is_missing() -> None:
    ends = round_trip.load_elsewhere(str(other_than_cpu()))
    assert "RuntimeError" in ends["load_as_saved"]
    assert ends["load_on_the_cpu"] == ends["load_for_the_device"] == "cpu"


@pytest.mark.gpu
def test_a_round_trip_between_devices_is_nearly_exact() -> None:
    there = str(other_than_cpu())
    config = RunConfig(task="sprites", model="cnn")
    trip = round_trip.measure(saved("cnn"), config, there, "cpu")
    assert trip.greatest_difference < 1e-2
    model = state_dict.load(saved("cnn"), "cnn", torch.device(there))
    file = state_dict.save(model, there, torch.float32)
    assert all(info.device.startswith(there) for info in round_trip.inspect(file))
    assert torch.load(io.BytesIO(file), map_location="cpu", weights_only=True)
