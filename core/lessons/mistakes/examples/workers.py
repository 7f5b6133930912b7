"""Mistakes with several processes. Only `same_random_numbers` is silent."""

import numpy as np
import torch
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

from core.halves import define
from core.lessons.mistakes.examples.fixtures import (
    batch,
    limit_shared_memory,
    on_two_ranks,
    workers,
)
from core.models import ANN


def lambda_in_workers(device):
    images, targets = batch()
    collate = lambda items: torch.stack(items)  # broken
    collate = torch.stack  # fixed
    loader = workers("spawn", images, collate)
    return next(iter(loader)).shape


def shared_memory(device):
    limit_shared_memory(1_000)  # bytes
    data = TensorDataset(*batch())
    loader = DataLoader(data, num_workers=1)  # broken
    loader = DataLoader(data, num_workers=0)  # fixed
    inputs, targets = next(iter(loader))
    return inputs.mean()


def rank_waits(device):
    def train(rank):
        model = DistributedDataParallel(ANN())
        images, targets = batch(65)
        mine = images[rank::2]  # 33 and 32
        with Join([model]):  # fixed
            for x in mine.split(32):
                model(x).mean().backward()
        return len(mine)

    return on_two_ranks(train)


def same_random_numbers(device):
    data = range(64)
    random = np.random.default_rng(0)  # broken

    def shifts(items):
        n = len(items)
        return random.integers(10**6, size=n)  # broken
        return torch.randint(10**6, (n,))  # fixed

    loader = workers("fork", data, shifts, 2)
    return len(np.unique(list(loader)))


define(globals())
