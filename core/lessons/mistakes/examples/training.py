"""Loud mistakes (they raise errors) in training or in loading an optimizer."""

import torch
from torch import nn

from core.halves import define
from core.lessons.mistakes.examples.fixtures import adam_state, batch, batches_of
from core.models import ANN


def backward_twice(device):
    model = nn.RNN(28, 32).to(device)
    inputs, targets = batch()
    images = inputs.squeeze(1).to(device)
    hidden = None
    for rows in images.split(7, dim=1):
        outputs, hidden = model(rows, hidden)
        outputs.mean().backward()
        hidden = hidden.detach()  # fixed
    return outputs.mean()


def target_dtype(device):
    model = ANN()
    criterion = nn.CrossEntropyLoss()
    inputs, targets = batch()
    targets = targets.float()  # broken
    targets = targets.long()  # fixed
    return criterion(model(inputs), targets)


def batch_of_one(device):
    norm = nn.BatchNorm1d(28 * 28).to(device)
    images = batch(129)
    batches = batches_of(64, images, device)
    for inputs, targets in batches:
        if len(inputs) > 1:  # like drop_last  # fixed
            outputs = norm(inputs.flatten(1))
    return outputs.std()


def optimizer_state(device):
    model = ANN()  # broken
    model = ANN().to(device)  # fixed
    weights = model.parameters()
    optimizer = torch.optim.Adam(weights)
    optimizer.load_state_dict(adam_state())
    model = model.to(device)  # broken
    inputs, targets = batch()
    model(inputs.to(device)).mean().backward()
    optimizer.step()
    return model(inputs.to(device)).mean()


define(globals())
