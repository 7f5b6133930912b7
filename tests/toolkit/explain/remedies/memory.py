"""Memory, files, and processes' limits."""

import os
import resource

import torch
from torch.utils.data import DataLoader, TensorDataset

from to_device.sim import memory


def out_of_memory(device):
    dataset = TensorDataset(torch.ones(64, 1 << 15))
    weight = torch.zeros(1 << 15, 1, device=device, requires_grad=True)
    with memory.limited_to(11 << 20):
        others = torch.ones(64, 1 << 14, device=device)
        loader = DataLoader(dataset, batch_size=64)  # broken
        loader = DataLoader(dataset, batch_size=16)  # fixed
        for (batch,) in loader:
            loss = (batch.to(device) @ weight).mean()
            (loss / len(loader)).backward()
            del batch, loss
        del others
    assert weight.grad.cpu().eq(1).all()  # as with a single batch of 64


def host_memory(device):
    count = 1 << 38  # broken
    count = 16  # fixed
    loader = DataLoader(range(64), batch_size=count, num_workers=0)
    batch = torch.empty(loader.batch_size, 3, 224, 224)
    assert len(batch) == count


def open_files(device):
    dataset = TensorDataset(torch.ones(200, 2))
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = len(os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 64, before[1]))
    try:
        loader = DataLoader(dataset, num_workers=1, multiprocessing_context="fork")
        kept = []
        for (labels,) in loader:
            kept.append(labels)  # broken
            kept.append(labels.clone())  # fixed
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert len(kept) == 200
