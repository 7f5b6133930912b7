"""Silent mistakes: the broken half raises no error, and returns a wrong figure."""

import time

import numpy as np
import torch
from torch import nn

from core.halves import define
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


def softmax_before_loss(device):
    model, optimizer = new_model(device)
    criterion = nn.CrossEntropyLoss()
    for inputs, targets in steps(device):
        outputs = model(inputs)
        outputs = outputs.softmax(dim=1)  # broken
        loss = criterion(outputs, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return accuracy(model, device)


def no_zero_grad(device):
    model, optimizer = new_model(device)
    criterion = nn.CrossEntropyLoss()
    for inputs, targets in steps(device):
        outputs = model(inputs)
        loss = criterion(outputs, targets)
        optimizer.zero_grad()  # fixed
        loss.backward()
        optimizer.step()
    return accuracy(model, device)


def no_eval_mode(device):
    model = trained_with_norm(device)
    model.eval()  # fixed
    correct = 0
    for right in hits(model, groups(device)):
        correct += right.sum()
    return int(correct) / TEST


def timing_unsynchronized(device):
    queue = DeviceQueue(device)
    queue.synchronize()  # fixed
    start = time.perf_counter()
    queue.put_work()
    queue.synchronize()  # fixed
    return time.perf_counter() - start


def item_every_step(device):
    model, optimizer = new_model(device)
    criterion = nn.CrossEntropyLoss()
    total = 0.0  # broken
    total = torch.zeros((), device=device)  # fixed
    for inputs, targets in steps(device):
        outputs = model(inputs)
        loss = criterion(outputs, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()  # broken
        total += loss.detach()  # fixed
    return total / STEPS  # broken
    return total.item() / STEPS  # fixed


def mean_of_batch_means(device):
    model = trained_ann(device)
    means = []  # broken
    correct = total = 0  # fixed
    for right in hits(model, ragged(device)):
        mean = right.float().mean()  # broken
        means.append(mean.item())  # broken
        correct += right.sum()  # fixed
        total += len(right)  # fixed
    return sum(means) / len(means)  # broken
    return int(correct) / total  # fixed


def list_never_trained(device):
    class Stack(nn.Module):
        def __init__(self):
            super().__init__()
            first = nn.Linear(784, 128)
            second = nn.Linear(128, 64)
            self.hidden = [first, second]  # broken
            self.hidden = nn.ModuleList(  # fixed
                [first, second],  # fixed
            )  # fixed
            self.head = nn.Linear(64, 10)

    weights = Stack().parameters()
    optimizer = torch.optim.AdamW(weights)
    return updated_by(optimizer)


def targets_broadcast(device):
    inputs, targets = points(device)
    targets = targets.squeeze(1)  # broken
    targets = targets.reshape(-1, 1)  # fixed
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


def graph_kept(device):
    model, optimizer = new_model(device)
    criterion = nn.CrossEntropyLoss()
    batches = steps(device)
    before, total = memory(device), 0
    for inputs, targets in batches:
        outputs = model(inputs)
        loss = criterion(outputs, targets)
        total += loss  # broken
        total += loss.detach()  # fixed
    return memory(device) - before


def memory_not_freed(device):
    big = torch.ones(64, 10**5, device=device)
    first = big[0]  # broken
    first = big[0].clone()  # fixed
    memory(device, "reserved")
    del big
    memory(device, "reserved")
    empty_cache(device)
    return memory(device, "reserved")


def nan_in_half(device):
    model = new_model(device)[0].half()  # broken
    model = new_model(device)[0]  # fixed
    kind, half = device.type, torch.float16  # fixed
    weights = model.parameters()
    optimizer = torch.optim.Adam(weights)
    criterion = nn.CrossEntropyLoss()
    scaler = torch.amp.GradScaler(kind)  # fixed
    for inputs, targets in steps(device):
        with torch.autocast(kind, half):  # fixed
            outputs = model(inputs.half())  # broken
            outputs = model(inputs)  # fixed
            loss = criterion(outputs, targets)
        optimizer.zero_grad()
        loss.backward()  # broken
        optimizer.step()  # broken
        scaler.scale(loss).backward()  # fixed
        scaler.step(optimizer)  # fixed
        scaler.update()  # fixed
    return accuracy(model.float(), device)  # broken
    return accuracy(model, device)  # fixed


def not_reproducible(device):
    torch.use_deterministic_algorithms(True)  # fixed
    losses = []
    for _ in range(2):
        torch.manual_seed(0)
        np.random.seed(0)  # fixed
        batches = steps(device)
        np.random.shuffle(batches)
        losses.append(train(batches, device))
    return abs(losses[0] - losses[1])


define(globals())
