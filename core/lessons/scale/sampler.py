"""Which images DistributedSampler gives each rank, with set_epoch and without."""

import numpy as np
import torch
from torch.utils.data import DistributedSampler, TensorDataset

from core.data import datasets

RANKS, EPOCHS = 2, 3


def orders(images: int, calls_set_epoch: bool) -> list[list[list[int]]]:
    """The images of each rank in each epoch.

    Each rank gets the same number of images, so some images may come twice.
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
        epochs.append([list(sampler) for sampler in samplers])
    return epochs


def first_batch(task: str, ranks: int, size: int) -> list[np.ndarray]:
    """Each rank's images in the first batch of a training run: uint8 (n, 28, 28)."""
    train = datasets.load(task).train
    dataset, images = TensorDataset(train.labels), []
    for rank in range(ranks):
        order: list[int] = list(DistributedSampler(dataset, ranks, rank))
        images.append(train.images[order[: size // ranks], 0].numpy())
    return images
