"""Train with mini-batches made by slicing, in two orders and at several batch sizes."""

import time
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from core import loops, models
from core.data import datasets
from core.data.datasets import Split
from core.lessons.train.train_result import OneEpoch
from core.measure.peak_memory import peak_bytes

BATCH_SIZE, LARGE = 64, 512
CPU = torch.device("cpu")


def slices(
    inputs: Tensor, targets: Tensor, batch_size: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """One epoch, without a loader or dataset: each batch is a slice."""
    for start in range(0, len(inputs), batch_size):
        end = start + batch_size  # the last slice may be shorter
        yield inputs[start:end], targets[start:end]


def train(model: nn.Module, feed: loops.Batches) -> int:
    """Train on each batch once; return the number of steps."""
    optimizer = torch.optim.Adam(model.parameters())
    criterion = nn.CrossEntropyLoss()
    return sum(1 for _ in loops.train_epoch(model, feed, criterion, optimizer, CPU))


def one_epoch(
    data: Split, test: Split, order: Tensor, batch_size: int = BATCH_SIZE
) -> OneEpoch:
    """Train a new model for one epoch, with the samples in this order."""
    model, images, labels = models.ANN(), data.images[order], data.labels[order]
    began = time.perf_counter()
    steps = train(model, slices(images, labels, batch_size))
    rate = len(order) / (time.perf_counter() - began)
    outputs, targets = loops.predict(model, [(test.images, test.labels)], CPU)
    accuracy = loops.score(outputs, targets, nn.CrossEntropyLoss()).accuracy
    return OneEpoch(batch_size, steps, rate, accuracy)


def step_bytes(data: Split, batch_size: int) -> int | None:
    """The peak memory of a training step, in bytes."""
    model = models.ANN()
    batch = next(slices(data.images, data.labels, batch_size))
    return peak_bytes(lambda: train(model, [batch]), CPU)


def compare_orders() -> dict[str, float]:
    """The accuracy on the sprites with "shuffled" batches, and with "sorted" ones."""
    dataset = datasets.load("sprites")
    labels = dataset.train.labels
    orders = {
        "shuffled": torch.randperm(len(labels)),
        "sorted": labels.argsort(stable=True),
    }
    return {
        name: one_epoch(dataset.train, dataset.test, order).accuracy
        for name, order in orders.items()
    }


def compare_sizes() -> list[tuple[OneEpoch, int | None]]:
    """For each batch size, an epoch on the sprites and the peak bytes of a step."""
    dataset = datasets.load("sprites")
    data = dataset.train
    order = torch.randperm(len(data))
    train(models.ANN(), slices(data.images, data.labels, LARGE))  # a warm-up
    return [
        (one_epoch(data, dataset.test, order, size), step_bytes(data, size))
        for size in (BATCH_SIZE, LARGE, len(data))
    ]
