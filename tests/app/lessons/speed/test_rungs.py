from functools import partial

import pytest
import torch

from core import devices, models
from core.data import datasets
from core.lessons.speed import rungs
from core.lessons.speed.climb_result import BY_NAME, RUNGS, Kept

CPU = torch.device("cpu")
BEFORE_THE_BATCH_GROWS = [rung.name for rung in RUNGS[:8]]
NAMES = [rung.name for rung in RUNGS]
QUICK = ("textbook", "on_the_device")
EACH = [
    pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow)
    for name in NAMES
]

pytestmark = pytest.mark.usefixtures("one_thread")


def losses(name, epochs=3, images=64, kept=Kept(), on=CPU, model="ann"):  # noqa: B008
    """Of all steps, as numbers."""
    torch.manual_seed(0)
    split = datasets.load("sprites").train.first(images)
    epoch = getattr(rungs, name)(split, models.build(model).to(on), on, kept)
    return [float(loss) for _ in range(epochs) for loss in epoch()]


@pytest.mark.parametrize("name", BEFORE_THE_BATCH_GROWS)
def test_the_first_rungs_compute_the_same(name):
    if name == "pinned" and not devices.other_than_cpu():
        pytest.skip("there is nothing to pin for")
    assert losses(name) == pytest.approx(losses("textbook"), rel=1e-4)


def test_16_bits_are_nearly_the_same():
    full, half = losses("fused"), losses("half_precision")
    assert half == pytest.approx(full, rel=0.03)
    assert half != full
    assert half[-1] < half[0]


@pytest.mark.parametrize("kept", [Kept(), Kept(half=True)])
def test_channels_last_changes_the_place_of_numbers_only(kept):
    torch.manual_seed(0)
    before = "half_precision" if kept.half else "fused"
    expected = losses(before, 2, model="cnn")
    actual = losses("channels_last", 2, kept=kept, model="cnn")
    assert actual == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("name", ["compiled", "whole_step"])
def test_what_is_compiled_computes_the_same(monkeypatch, name):
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))
    assert losses(name) == pytest.approx(losses("fused"), rel=1e-4)
    assert len(losses(name, 1, 100)) == 1


def test_the_rungs_above_build_on_what_was_kept():
    assert len(losses("half_precision", 1, 512)) == 8
    assert len(losses("half_precision", 1, 512, Kept(batch_size=256))) == 2


@pytest.mark.gpu
@pytest.mark.parametrize("name", EACH)
def test_every_rung_trains_on_the_accelerator(name):
    on = devices.other_than_cpu()
    if obstacle := BY_NAME[name].obstacle(devices.backend(on), "cnn"):
        pytest.skip(obstacle)
    curve = losses(name, 20, 256, on=on, model="cnn")
    assert curve[-1] < curve[0] / 2


@pytest.mark.gpu
def test_a_graph_computes_what_its_steps_compute():
    on = devices.other_than_cpu()
    if devices.backend(on) != "CUDA":
        pytest.skip("CUDA graphs need CUDA")
    assert losses("graphed", 4, on=on) == pytest.approx(
        losses("fused", 7, on=on)[3:], rel=1e-2
    )
