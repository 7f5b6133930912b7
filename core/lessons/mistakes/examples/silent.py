"""Silent: `broken_<slug>(device)` raises nothing, and returns a wrong figure."""

import time

import torch
from torch import nn

from core.lessons.mistakes.examples.fixtures import (
    STEPS,
    TEST,
    DeviceQueue,
    accuracy,
    groups,
    hits,
    new_model,
    ragged,
    steps,
    trained_ann,
    trained_with_norm,
    updated_by,
)


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
