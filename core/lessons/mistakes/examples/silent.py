"""Silent: `broken_<slug>(device)` raises nothing, and returns a wrong figure."""

import os
import time

import numpy as np
import torch
from torch import nn

from core.lessons.mistakes.examples.fixtures import (
    STEPS,
    TEST,
    DeviceQueue,
    accuracy,
    empty_cache,
    groups,
    hits,
    memory,
    new_model,
    points,
    ragged,
    steps,
    train,
    trained_ann,
    trained_with_norm,
    updated_by,
)
from core.models import SimpleRegressionNet


def broken_softmax_before_loss(device):
    model, optimizer = new_model(device)
    criterion = nn.CrossEntropyLoss()
    for inputs, targets in steps(device):
        outputs = model(inputs)
        outputs = outputs.softmax(dim=1)
        loss = criterion(outputs, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return accuracy(model, device)


def fixed_softmax_before_loss(device):
    model, optimizer = new_model(device)
    criterion = nn.CrossEntropyLoss()
    for inputs, targets in steps(device):
        outputs = model(inputs)
        loss = criterion(outputs, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return accuracy(model, device)


def broken_no_zero_grad(device):
    model, optimizer = new_model(device)
    criterion = nn.CrossEntropyLoss()
    for inputs, targets in steps(device):
        outputs = model(inputs)
        loss = criterion(outputs, targets)
        loss.backward()
        optimizer.step()
    return accuracy(model, device)


def fixed_no_zero_grad(device):
    model, optimizer = new_model(device)
    criterion = nn.CrossEntropyLoss()
    for inputs, targets in steps(device):
        outputs = model(inputs)
        loss = criterion(outputs, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return accuracy(model, device)


def broken_no_eval_mode(device):
    model = trained_with_norm(device)
    correct = 0
    for right in hits(model, groups(device)):
        correct += right.sum()
    return int(correct) / TEST


def fixed_no_eval_mode(device):
    model = trained_with_norm(device)
    model.eval()
    correct = 0
    for right in hits(model, groups(device)):
        correct += right.sum()
    return int(correct) / TEST


def broken_timing_unsynchronized(device):
    queue = DeviceQueue(device)
    start = time.perf_counter()
    queue.put_work()
    return time.perf_counter() - start


def fixed_timing_unsynchronized(device):
    queue = DeviceQueue(device)
    queue.synchronize()
    start = time.perf_counter()
    queue.put_work()
    queue.synchronize()
    return time.perf_counter() - start


def broken_item_every_step(device):
    model, optimizer = new_model(device)
    criterion = nn.CrossEntropyLoss()
    total = 0.0
    for inputs, targets in steps(device):
        outputs = model(inputs)
        loss = criterion(outputs, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / STEPS


def fixed_item_every_step(device):
    model, optimizer = new_model(device)
    criterion = nn.CrossEntropyLoss()
    total = torch.zeros((), device=device)
    for inputs, targets in steps(device):
        outputs = model(inputs)
        loss = criterion(outputs, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.detach()
    return total.item() / STEPS


def broken_mean_of_batch_means(device):
    model = trained_ann(device)
    means = []
    for right in hits(model, ragged(device)):
        mean = right.float().mean()
        means.append(mean.item())
    return sum(means) / len(means)


def fixed_mean_of_batch_means(device):
    model = trained_ann(device)
    correct = total = 0
    for right in hits(model, ragged(device)):
        correct += right.sum()
        total += len(right)
    return int(correct) / total


def broken_list_never_trained(device):
    class Stack(nn.Module):
        def __init__(self):
            super().__init__()
            first = nn.Linear(784, 128)
            second = nn.Linear(128, 64)
            self.hidden = [first, second]
            self.head = nn.Linear(64, 10)

    weights = Stack().parameters()
    optimizer = torch.optim.AdamW(weights)
    return updated_by(optimizer)


def fixed_list_never_trained(device):
    class Stack(nn.Module):
        def __init__(self):
            super().__init__()
            first = nn.Linear(784, 128)
            second = nn.Linear(128, 64)
            self.hidden = nn.ModuleList(
                [first, second],
            )
            self.head = nn.Linear(64, 10)

    weights = Stack().parameters()
    optimizer = torch.optim.AdamW(weights)
    return updated_by(optimizer)


def broken_targets_broadcast(device):
    inputs, targets = points(device)
    targets = targets.squeeze(1)
    model = SimpleRegressionNet().to(device)
    params = model.parameters()
    optimizer = torch.optim.Adam(params, 0.01)
    criterion = nn.MSELoss()
    for _ in range(STEPS):
        outputs = model(inputs)
        loss = criterion(outputs, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model(inputs).std()


def fixed_targets_broadcast(device):
    inputs, targets = points(device)
    targets = targets.reshape(-1, 1)
    model = SimpleRegressionNet().to(device)
    params = model.parameters()
    optimizer = torch.optim.Adam(params, 0.01)
    criterion = nn.MSELoss()
    for _ in range(STEPS):
        outputs = model(inputs)
        loss = criterion(outputs, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model(inputs).std()


def broken_graph_kept(device):
    model, optimizer = new_model(device)
    criterion = nn.CrossEntropyLoss()
    batches = steps(device)
    before, total = memory(device), 0
    for inputs, targets in batches:
        outputs = model(inputs)
        loss = criterion(outputs, targets)
        total += loss
    return memory(device) - before


def fixed_graph_kept(device):
    model, optimizer = new_model(device)
    criterion = nn.CrossEntropyLoss()
    batches = steps(device)
    before, total = memory(device), 0
    for inputs, targets in batches:
        outputs = model(inputs)
        loss = criterion(outputs, targets)
        total += loss.detach()
    return memory(device) - before


def broken_memory_not_freed(device):
    big = torch.ones(64, 10**5, device=device)
    first = big[0]
    memory(device, "reserved")
    del big
    memory(device, "reserved")
    empty_cache(device)
    return memory(device, "reserved")


def fixed_memory_not_freed(device):
    big = torch.ones(64, 10**5, device=device)
    first = big[0].clone()
    memory(device, "reserved")
    del big
    memory(device, "reserved")
    empty_cache(device)
    return memory(device, "reserved")


def broken_nan_in_half(device):
    model = new_model(device)[0].half()
    weights = model.parameters()
    optimizer = torch.optim.Adam(weights)
    criterion = nn.CrossEntropyLoss()
    for inputs, targets in steps(device):
        outputs = model(inputs.half())
        loss = criterion(outputs, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return accuracy(model.float(), device)


def fixed_nan_in_half(device):
    model = new_model(device)[0]
    kind, half = device.type, torch.float16
    weights = model.parameters()
    optimizer = torch.optim.Adam(weights)
    criterion = nn.CrossEntropyLoss()
    scaler = torch.amp.GradScaler(kind)
    for inputs, targets in steps(device):
        with torch.autocast(kind, half):
            outputs = model(inputs)
            loss = criterion(outputs, targets)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    return accuracy(model, device)


def broken_not_reproducible(device):
    losses = []
    for _ in range(2):
        torch.manual_seed(0)
        batches = steps(device)
        np.random.shuffle(batches)
        losses.append(train(batches, device))
    return abs(losses[0] - losses[1])


def fixed_not_reproducible(device):
    cublas = "CUBLAS_WORKSPACE_CONFIG"
    os.environ[cublas] = ":4096:8"
    torch.use_deterministic_algorithms(True)
    losses = []
    for _ in range(2):
        torch.manual_seed(0)
        np.random.seed(0)
        batches = steps(device)
        np.random.shuffle(batches)
        losses.append(train(batches, device))
    return abs(losses[0] - losses[1])
