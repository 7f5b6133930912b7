"""Loud: more than there is room for, in memory and in the classes of a loss."""

import torch
from torch import nn

from core.lessons.mistakes.examples.fixtures import batch
from core.models import ANN


def broken_out_of_memory(device):
    model = wide_model().to(device)
    criterion = nn.CrossEntropyLoss(
        reduction="sum",
    )
    inputs, targets = batch(4_000)
    inputs = inputs.to(device)
    targets = targets.to(device)
    outputs = model(inputs)
    loss = criterion(outputs, targets)
    loss.backward()
    return model[0].weight.grad.norm()


def fixed_out_of_memory(device):
    model = wide_model().to(device)
    criterion = nn.CrossEntropyLoss(
        reduction="sum",
    )
    inputs, targets = batch(4_000)
    pieces = zip(
        inputs.split(100),
        targets.split(100),
    )
    for inputs, targets in pieces:
        inputs = inputs.to(device)
        targets = targets.to(device)
        outputs = model(inputs)
        loss = criterion(outputs, targets)
        loss.backward()  # adds up
    return model[0].weight.grad.norm()


def broken_label_outside_classes(device):
    model = ANN().to(device)
    criterion = nn.CrossEntropyLoss()
    inputs, targets = batch(first_label=1)
    inputs = inputs.to(device)
    targets = targets.to(device)
    outputs = model(inputs)
    loss = criterion(outputs, targets)
    return loss.item()


def fixed_label_outside_classes(device):
    model = ANN().to(device)
    criterion = nn.CrossEntropyLoss()
    inputs, targets = batch(first_label=1)
    inputs = inputs.to(device)
    targets = targets.to(device)
    outputs = model(inputs)
    loss = criterion(outputs, targets - 1)
    return loss.item()


def wide_model():
    """A convolution whose outputs take 100 kB for each image, and a linear layer."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 32, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 28 * 28, 10),
    )
