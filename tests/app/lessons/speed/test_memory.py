import gc
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from core.lessons.speed import memory
from core.lessons.speed.memory_result import ACCUMULATED, CHECKPOINTED, STEP
from core.watch import Watch
from to_device.sim import memory as device_memory
from to_device.sim import simulation

pytestmark = pytest.mark.usefixtures("one_thread")
SIZE = (32, 512)  # width, batch


@pytest.fixture(scope="module")
def lab():
    """On a tiny model, and on the smallest card."""
    reported = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "CARDS", memory.CARDS[:1])
        lab = memory.measure("cpu", Watch(reported.append), size=SIZE, repeats=2)
    assert reported == [replace(cost, seconds=()) for cost in lab.costs]
    return lab


@pytest.fixture(scope="module")
def costs(lab):
    """Of each of the six ways by its name."""
    assert [len(cost.seconds) for cost in lab.costs] == [2] * 6
    return {cost.name: cost for cost in lab.costs}


@pytest.mark.slow
def test_what_is_said_to_save_memory_does(costs):
    peaks = {name: cost.peak_bytes for name, cost in costs.items()}
    assert peaks[CHECKPOINTED] < 0.8 * peaks[STEP]
    assert peaks[ACCUMULATED] < 0.8 * peaks[STEP]
    assert peaks["no_grad"] < 0.5 * peaks["gradients"]
    assert peaks["inference_mode"] < 0.5 * peaks["gradients"]


def test_all_ways_give_the_same(costs):
    assert costs[STEP].difference == costs[CHECKPOINTED].difference == 0
    for cost in costs.values():
        assert cost.greatest > 1e-3
        assert cost.difference < 1e-4 * cost.greatest


def test_the_gradients_are_those_of_the_mean_loss():
    torch.manual_seed(0)
    model = memory.build(8)
    inputs, targets = torch.rand(16, 784), torch.randint(10, (16,))
    loss = F.cross_entropy(model(inputs), targets)
    expected = torch.autograd.grad(loss, list(model.parameters()))
    for way in memory.TRAINING.values():
        way(model, inputs, targets)
        for gradient, correct in zip(memory.gradients(model), expected, strict=True):
            torch.testing.assert_close(gradient, correct)


def test_a_difference_between_gradients_is_found():
    zeros, off = torch.zeros(3), torch.tensor([0.0, -0.5, 0.0])
    assert memory.greatest_difference([zeros, zeros], [zeros, off]) == 0.5


@pytest.mark.sim
def test_a_card_is_filled_until_there_is_no_room(lab):
    (card,) = lab.cards
    assert card.fits[STEP] < card.fits[CHECKPOINTED]
    assert "32.00 MiB" in card.message
    assert card.activations[CHECKPOINTED] < card.activations[STEP] < card.bytes


@pytest.mark.sim
def test_the_bytes_of_a_step_are_the_same_each_time_and_given_back():
    first = memory.step_on_card(STEP, 8)
    gc.collect()
    before = device_memory.allocated
    assert memory.step_on_card(STEP, 8) == first
    gc.collect()
    assert device_memory.allocated == before


def test_without_the_simulated_accelerator_there_are_no_cards(monkeypatch):
    monkeypatch.setattr(simulation, "why_not", "It is switched off.")
    assert memory.measure("cpu", size=SIZE, repeats=1).cards == ()
