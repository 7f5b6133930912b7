"""Checkpoints from strangers: what is one of ours is found, what differs is listed."""

import io
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from torch import Tensor, nn

from core.config import IMAGE_MODELS, RunConfig
from core.data import datasets
from core.lessons.checkpoints import upload
from core.lessons.checkpoints.checkpoints_result import Opened
from core.lessons.evaluate import evaluation
from core.state_dict import save
from tests.app.lessons.checkpoints.files import (
    GOOD,
    built,
    said_to_be_from,
    saved,
    weights,
    with_first,
)
from tests.process import HOUR, python

pytestmark = pytest.mark.usefixtures("one_thread")


def open_file(file: bytes, model: str | None = None) -> Opened:
    return upload.open_untrusted(file, model)


def state(opened: Opened) -> dict[str, Tensor]:
    assert opened.checkpoint is not None
    return torch.load(io.BytesIO(opened.checkpoint), weights_only=True)


def same(opened: Opened, model: str = "ann") -> bool:
    mine, expected = state(opened), weights(model)
    assert list(mine) == list(expected)
    return all(torch.equal(mine[name], expected[name]) for name in expected)


def prefixed(prefix: str) -> dict[str, Tensor]:
    return {f"{prefix}{name}": tensor for name, tensor in weights().items()}


@pytest.mark.parametrize(
    ("content", "note"),
    [
        (weights(), ""),
        ({"state_dict": weights(), "epoch": 3}, "`epoch`"),
        ({"model_state_dict": weights()}, "`model_state_dict`"),
        ({"model": {"state_dict": weights()}}, "`state_dict`"),
        (prefixed("module."), "DataParallel"),
        (prefixed("_orig_mod."), "torch.compile"),
        (prefixed("module._orig_mod."), "torch.compile"),
        ({**weights(), "epoch": 3}, "`epoch`"),
        ({n: t.double() for n, t in weights().items()}, "float64"),
        ({n: nn.Parameter(t) for n, t in weights().items()}, ""),
    ],
)
def test_the_usual_ways_of_saving_fit(content: Any, note: str) -> None:
    opened = open_file(saved(content))
    assert opened.model == "ann"
    assert same(opened)
    assert note in " ".join(opened.notes)
    assert bool(note) == bool(opened.notes)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_floats_are_cast(dtype: torch.dtype) -> None:
    rounded = {name: tensor.to(dtype) for name, tensor in weights().items()}
    opened = open_file(saved(rounded))
    assert "float32" in opened.notes[0]
    for name, tensor in state(opened).items():
        assert torch.equal(tensor, rounded[name].float())


@pytest.mark.parametrize("model", ["ann", "cnn"])
def test_all_three_formats_fit(model: str) -> None:
    zipped = open_file(save(built(model)))
    old = open_file(saved(weights(model), _use_new_zipfile_serialization=False))
    safe = open_file(
        safetensors.torch.save({n: t.contiguous() for n, t in weights(model).items()})
    )
    for opened in (zipped, old, safe):
        assert opened.model == model
        assert same(opened, model)
    assert len({opened.format for opened in (zipped, old, safe)}) == 3
    assert {info.device for info in zipped.tensors} == {"cpu"}
    assert {info.device for info in safe.tensors} == {"not recorded"}


def test_the_device_in_the_file_is_named() -> None:
    opened = open_file(said_to_be_from("cuda:3"))
    assert {info.device for info in opened.tensors} == {"cuda:3"}
    assert same(opened)


def test_other_names_are_matched_in_order() -> None:
    for model in IMAGE_MODELS:
        other = {f"net.l{i}.w": t for i, t in enumerate(weights(model).values())}
        opened = open_file(saved(other))
        assert same(opened, model)
        assert [ours for _, ours in opened.renamed] == list(weights(model))


def test_other_names_are_matched_when_sorted() -> None:
    names = {"0.0": "conv1", "0.2": "bn1", "1.0": "conv2", "1.2": "bn2"}
    names |= {"2.0": "conv10", "2.2": "bn10", "3.0": "conv11", "3.1": "bn11", "6": "fc"}
    expected, ours, theirs = weights("cnn"), {}, {}
    for number, name in enumerate(expected):
        layer, _, part = name.removeprefix("layers.").rpartition(".")
        ours[f"net.{names[layer]}.{part}"] = name
        counter = expected[name].ndim == 0
        theirs[f"net.{names[layer]}.{part}"] = (
            torch.tensor(number) if counter else expected[name].contiguous()
        )
    opened = open_file(safetensors.torch.save(theirs))
    assert dict(opened.renamed) == ours
    assert all(
        torch.equal(state(opened)[name], theirs[their]) for their, name in ours.items()
    )


@pytest.mark.parametrize("model", IMAGE_MODELS)
def test_what_is_handed_on_is_plain(model: str) -> None:
    def odd(tensor: Tensor) -> Tensor:
        if not tensor.is_floating_point():
            return tensor
        return nn.Parameter(torch._neg_view(-tensor.double()))

    content = {name: odd(tensor) for name, tensor in weights(model).items()}
    plain = state(open_file(saved(content)))
    for name, tensor in weights(model).items():
        assert type(plain[name]) is Tensor
        assert plain[name].dtype == tensor.dtype
        assert plain[name].is_contiguous()
        assert not plain[name].is_neg()
        assert not plain[name].requires_grad
        if tensor.is_floating_point():
            assert torch.equal(plain[name], tensor)


# What does not fit


def test_differences_are_listed() -> None:
    content = weights()
    content["extra"] = content.pop("layers.5.bias")
    content["layers.3.bias"] = torch.zeros(65)
    opened = open_file(saved(content))
    assert opened.model == "ann"
    assert opened.missing == ("layers.5.bias",)
    assert opened.unexpected == ("extra",)
    assert opened.misshapen == (("layers.3.bias", "float32 (65,)", "float32 (64,)"),)
    assert opened.checkpoint is None


def test_integers_do_not_stand_in_for_floats() -> None:
    opened = open_file(with_first(lambda t: t.long()))
    assert [name for name, *_ in opened.misshapen] == ["layers.1.weight"]
    assert opened.checkpoint is None


def test_another_architecture_can_be_asked_for() -> None:
    opened = open_file(GOOD, "cnn")
    assert (len(opened.missing), len(opened.unexpected)) == (26, 6)
    assert opened.checkpoint is None


# Together with scripts that know nothing of this app

PLAIN = """
import sys
import torch
from torch import nn
torch.set_num_threads(1)
folder = sys.argv[1]
data = torch.load(folder + "/data.pt", weights_only=True)
images, labels = data["images"].float() / 255, data["labels"]

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(784, 128)
        self.fc2 = nn.Linear(128, 64)
        self.fc3 = nn.Linear(64, 10)

    def forward(self, x):
        x = torch.relu(self.fc1(x.flatten(1)))
        return self.fc3(torch.relu(self.fc2(x)))

def correct(model):
    with torch.no_grad():
        return int((model(images).argmax(1) == labels).sum())

model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(60):
    batch = torch.randint(len(labels), (64,))
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(images[batch]), labels[batch]).backward()
    optimizer.step()
torch.save({"model_state_dict": model.state_dict()}, folder + "/plain.pt")

ours = nn.Module()
ours.layers = nn.Sequential(
    nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(),
    nn.Linear(64, 10),
)
ours.load_state_dict(torch.load(folder + "/ours.pt", weights_only=True))
print(correct(model), correct(ours.layers))
"""


@pytest.mark.slow
def test_a_plain_script_and_this_app_agree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upload, "SECONDS", HOUR)
    test = datasets.load("sprites").test
    torch.save({"images": test.images, "labels": test.labels}, tmp_path / "data.pt")
    config = RunConfig(task="sprites")
    (tmp_path / "ours.pt").write_bytes(save(built("ann")))
    done = python("-I", "-c", PLAIN, str(tmp_path))
    theirs_there, ours_there = map(int, done.stdout.split())
    opened = upload.open_safely((tmp_path / "plain.pt").read_bytes(), "plain.pt")
    assert opened.checkpoint is not None
    assert dict(opened.renamed)["fc1.weight"] == "layers.1.weight"
    theirs_here = evaluation.evaluate(opened.checkpoint, config, "cpu").correct
    ours = (tmp_path / "ours.pt").read_bytes()
    ours_here = evaluation.evaluate(ours, config, "cpu").correct
    assert (theirs_here, ours_here) == (theirs_there, ours_there)
    assert theirs_here > 400
