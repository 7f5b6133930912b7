"""Mini-batches by slicing: one epoch in an order that is drawn, one sorted by class."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from core import loops, models
from core.data import datasets
from core.data.datasets import Split

BATCH_SIZE = 64


def slices(
    inputs: Tensor, targets: Tensor, batch_size: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """An epoch: no loader, no dataset, only a start that moves on."""
    for start in range(0, len(inputs), batch_size):
        end = start + batch_size  # beyond the tensor's, the slice is shorter
        yield inputs[start:end], targets[start:end]


def one_epoch(train: Split, test: Split, order: Tensor) -> float:
    """The test accuracy after one epoch in that order."""
    model = models.ANN()
    optimizer = torch.optim.Adam(model.parameters())
    feed = slices(train.images[order], train.labels[order], BATCH_SIZE)
    cpu = torch.device("cpu")
    for _ in loops.train_epoch(model, feed, nn.CrossEntropyLoss(), optimizer, cpu):
        pass
    outputs, targets = loops.predict(model, [(test.images, test.labels)], cpu)
    return loops.score(outputs, targets, nn.CrossEntropyLoss()).accuracy


def compare() -> dict[str, float]:
    """The accuracy on the sprites with "shuffled" batches, and with "sorted" ones."""
    dataset = datasets.load("sprites")
    labels = dataset.train.labels
    orders = {
        "shuffled": torch.randperm(len(labels)),
        "sorted": labels.argsort(stable=True),
    }
    return {
        name: one_epoch(dataset.train, dataset.test, order)
        for name, order in orders.items()
    }
