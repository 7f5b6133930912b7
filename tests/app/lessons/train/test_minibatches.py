import pytest
import torch

from core.data import datasets
from core.lessons.train import minibatches


def test_slices_are_the_whole_epoch() -> None:
    inputs = torch.arange(10)
    found = list(minibatches.slices(inputs, -inputs, 4))
    assert [len(batch) for batch, _ in found] == [4, 4, 2]
    assert torch.equal(torch.cat([batch for batch, _ in found]), inputs)
    assert all(torch.equal(targets, -batch) for batch, targets in found)


def test_sorted_by_class_or_in_one_batch_it_learns_less() -> None:
    dataset = datasets.load("sprites")
    data, test = dataset.train.first(4000), dataset.test.first(500)
    by_class, order = data.labels.argsort(stable=True), torch.randperm(4000)
    shuffled = minibatches.one_epoch(data, test, order)
    whole = minibatches.one_epoch(data, test, order, 4000)
    assert (shuffled.steps, whole.steps) == (63, 1)
    for worse in (minibatches.one_epoch(data, test, by_class), whole):
        assert shuffled.accuracy > worse.accuracy + 0.2


def test_a_step_keeps_more_of_a_larger_batch() -> None:
    data = datasets.load("sprites").train.first(2048)
    small, large = (minibatches.step_bytes(data, size) for size in (1024, 2048))
    assert small
    assert large
    floats = 28 * 28 + 128 + 128 + 64 + 64 + 10
    assert large - small == pytest.approx(1024 * 4 * floats, rel=0.3)
