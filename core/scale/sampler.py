"""Which images each rank is fed: DistributedSampler, with set_epoch and without."""

import numpy as np
import torch
from torch.utils.data import DistributedSampler, TensorDataset

from core.data import datasets
from core.scale.results import Orders

RANKS, EPOCHS = 2, 3


def orders(
    images: int, calls_set_epoch: bool
) -> tuple[tuple[tuple[int, ...], ...], ...]:
    """By epoch and rank, the numbers of the images in their order.

    Shares are of equal size: if need be, some images come twice.
    """
    dataset = TensorDataset(torch.arange(images))
    samplers: list[DistributedSampler] = [
        DistributedSampler(dataset, num_replicas=RANKS, rank=rank)
        for rank in range(RANKS)
    ]
    epochs = []
    for epoch in range(EPOCHS):
        for sampler in samplers:
            if calls_set_epoch:
                sampler.set_epoch(epoch)
        epochs.append(tuple(tuple(sampler) for sampler in samplers))
    return tuple(epochs)


def both(images: int) -> Orders:
    """With set_epoch, and with it forgotten."""
    return Orders(images, orders(images, True), orders(images, False))


def first_batch(task: str, ranks: int, size: int) -> list[np.ndarray]:
    """By rank, the images of its share of the first batch, uint8 (size/ranks, 28, 28).

    They are those that core.scale.data_parallel.train begins with.
    """
    train = datasets.load(task).train
    dataset = TensorDataset(train.labels)
    samplers: list[DistributedSampler] = [
        DistributedSampler(dataset, ranks, rank) for rank in range(ranks)
    ]
    orders = map(list, samplers)
    return [train.images[order[: size // ranks], 0].numpy() for order in orders]
