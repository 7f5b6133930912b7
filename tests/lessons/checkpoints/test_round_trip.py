"""Our checkpoints: what is in them, and that they are the same model again."""

import io

import pytest
import torch

from core import models, state_dict
from core.config import IMAGE_MODELS, RunConfig
from core.devices import accelerator
from core.errors import CancelledError
from core.lessons.checkpoints import round_trip
from core.watch import Watch
from tests.process import python

pytestmark = pytest.mark.usefixtures("one_thread")


def made(model: str) -> bytes:
    torch.manual_seed(1)
    return state_dict.save(models.build(model))


@pytest.mark.parametrize("model", IMAGE_MODELS)
def test_contents_are_those_of_the_model(model: str) -> None:
    expected = models.build(model).state_dict()
    found = {each.name: each for each in round_trip.inspect(made(model))}
    assert list(found) == list(expected)
    for name, tensor in expected.items():
        assert found[name].shape == tuple(tensor.shape)
        assert f"torch.{found[name].dtype}" == str(tensor.dtype)
        assert found[name].bytes == tensor.numel() * tensor.element_size()
        assert found[name].device == "cpu"


LOAD = """
import sys
import torch
from safetensors.torch import load
folder = sys.argv[1]
a = torch.load(folder + "/a.pt", weights_only=True)
b = load(open(folder + "/a.safetensors", "rb").read())
assert a.keys() == b.keys()
print(sum(torch.equal(a[name], b[name]) for name in a), "core" in sys.modules)
"""


def test_both_formats_load_in_a_plain_script(tmp_path) -> None:
    file = made("cnn")
    (tmp_path / "a.pt").write_bytes(file)
    (tmp_path / "a.safetensors").write_bytes(round_trip.to_safetensors(file))
    done = python("-I", "-c", LOAD, str(tmp_path))
    assert done.stdout.split() == ["26", "False"]


@pytest.mark.parametrize("model", IMAGE_MODELS)
def test_a_round_trip_on_one_device_changes_nothing(model: str) -> None:
    config = RunConfig(task="sprites", model=model)
    found = round_trip.measure(made(model), config, "cpu", "cpu")
    assert (found.greatest_difference, found.differing_values) == (0.0, 0)
    assert found.differing_predictions == 0
    assert found.values == 10 * found.images == 20_000


def test_a_rounded_file_is_seen() -> None:
    found = round_trip.measure(
        made("ann"), RunConfig(task="sprites"), "cpu", "cpu", "float16"
    )
    assert 0 < found.greatest_difference < 0.1
    assert found.differing_values > 10_000
    assert found.bytes < 0.6 * len(made("ann"))


@pytest.mark.gpu
def test_a_round_trip_between_devices_is_nearly_exact() -> None:
    there = str(accelerator())
    config = RunConfig(task="sprites", model="cnn")
    found = round_trip.measure(made("cnn"), config, there, "cpu")
    assert found.greatest_difference < 1e-2
    model = state_dict.load(made("cnn"), "cnn", torch.device(there))
    file = state_dict.save(model, there, torch.float32)
    assert all(each.device.startswith(there) for each in round_trip.inspect(file))
    assert torch.load(io.BytesIO(file), map_location="cpu", weights_only=True)


def test_a_round_trip_is_cancelled() -> None:
    with pytest.raises(CancelledError):
        round_trip.measure(
            made("ann"),
            RunConfig(task="sprites"),
            "cpu",
            "cpu",
            watch=Watch(cancelled=lambda: True),
        )
