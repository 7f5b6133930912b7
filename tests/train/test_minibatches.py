"""Batches by slicing: whole epochs, and what order does to them."""

import torch

from core.data import datasets
from core.train import minibatches


def test_slices_are_the_whole_epoch() -> None:
    """Every sample once, in order; the last batch is what is left."""
    inputs = torch.arange(10)
    found = list(minibatches.slices(inputs, -inputs, 4))
    assert [len(batch) for batch, _ in found] == [4, 4, 2]
    assert torch.equal(torch.cat([batch for batch, _ in found]), inputs)
    assert all(torch.equal(targets, -batch) for batch, targets in found)


def test_sorted_by_class_it_learns_less() -> None:
    """The last batches are of one class, and the others are forgotten."""
    dataset = datasets.load("sprites")
    train, test = dataset.train.first(4000), dataset.test.first(500)
    shuffled, by_class = (
        minibatches.one_epoch(train, test, order)
        for order in (torch.randperm(4000), train.labels.argsort(stable=True))
    )
    assert shuffled > by_class + 0.2
