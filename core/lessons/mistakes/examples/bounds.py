"""Loud mistakes (they raise errors): too little memory, a label too large."""

import torch
from torch import nn

from core.halves import define
from core.lessons.mistakes.examples.fixtures import batch
from core.models import ANN


def out_of_memory(device):
    model = wide_model().to(device)
    criterion = nn.CrossEntropyLoss(
        reduction="sum",
    )
    inputs, targets = batch(4_000)
    pieces = zip(  # fixed
        inputs.split(100),  # fixed
        targets.split(100),  # fixed
    )  # fixed
    for inputs, targets in pieces:  # fixed
        inputs = inputs.to(device)
        targets = targets.to(device)
        outputs = model(inputs)
        loss = criterion(outputs, targets)
        loss.backward()  # broken
        loss.backward()  # adds up  # fixed
    return model[0].weight.grad.norm()


def label_outside_classes(device):
    model = ANN().to(device)
    criterion = nn.CrossEntropyLoss()
    inputs, targets = batch(first_label=1)
    inputs = inputs.to(device)
    targets = targets.to(device)
    outputs = model(inputs)
    loss = criterion(outputs, targets)  # broken
    loss = criterion(outputs, targets - 1)  # fixed
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


define(globals())
