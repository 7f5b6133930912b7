"""Loud, but for the random numbers: what only shows where several processes work."""

import numpy as np
import torch
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

from core.lessons.mistakes.examples.fixtures import (
    batch,
    limit_shared_memory,
    on_two_ranks,
    workers,
)
from core.models import ANN


def broken_lambda_in_workers(device):
    images, targets = batch()
    collate = lambda items: torch.stack(items)
    loader = workers("spawn", images, collate)
    return next(iter(loader)).shape


def fixed_lambda_in_workers(device):
    images, targets = batch()
    collate = torch.stack
    loader = workers("spawn", images, collate)
    return next(iter(loader)).shape


def broken_shared_memory(device):
    limit_shared_memory(1_000)  # bytes
    data = TensorDataset(*batch())
    loader = DataLoader(data, num_workers=1)
    inputs, targets = next(iter(loader))
    return inputs.mean()


def fixed_shared_memory(device):
    limit_shared_memory(1_000)  # bytes
    data = TensorDataset(*batch())
    loader = DataLoader(data, num_workers=0)
    inputs, targets = next(iter(loader))
    return inputs.mean()


def broken_rank_waits(device):
    def train(rank):
        model = DistributedDataParallel(ANN())
        images, targets = batch(65)
        mine = images[rank::2]  # 33 and 32
        for x in mine.split(32):
            model(x).mean().backward()
        return len(mine)

    return on_two_ranks(train)


def fixed_rank_waits(device):
    def train(rank):
        model = DistributedDataParallel(ANN())
        images, targets = batch(65)
        mine = images[rank::2]  # 33 and 32
        with Join([model]):
            for x in mine.split(32):
                model(x).mean().backward()
        return len(mine)

    return on_two_ranks(train)


def broken_same_random_numbers(device):
    random = np.random.default_rng(0)

    def shifts(items):
        n = len(items)
        return random.integers(10**6, size=n)

    data = range(64)
    loader = workers("fork", data, shifts, 2)
    return len(np.unique(list(loader)))


def fixed_same_random_numbers(device):
    def shifts(items):
        n = len(items)
        return torch.randint(10**6, (n,))

    data = range(64)
    loader = workers("fork", data, shifts, 2)
    return len(np.unique(list(loader)))
