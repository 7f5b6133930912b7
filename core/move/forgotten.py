"""One step of training with some of its four moves forgotten, and what torch says."""

import traceback
from collections.abc import Collection

import torch
from torch import nn

from core import devices
from core.models import ANN
from core.move.model_to import resolve
from core.move.results import Forgotten


def step(device: torch.device, moved: set[str]) -> None:
    model = ANN()
    criterion = nn.CrossEntropyLoss(weight=torch.ones(10))
    inputs = torch.rand(64, 1, 28, 28)
    labels = torch.arange(64) % 10

    if "model" in moved:
        model.to(device)
    if "loss" in moved:  # the weights of the classes
        criterion.to(device)
    if "inputs" in moved:
        inputs = inputs.to(device)
    if "labels" in moved:
        labels = labels.to(device)

    outputs = model(inputs)
    loss = criterion(outputs, labels)
    loss.backward()


def attempt(device_name: str, moved: Collection[str]) -> Forgotten:
    """How that step ends: without an error, or with one that a line raised."""
    device = resolve(device_name)
    try:
        step(device, set(moved))
        devices.synchronize(device)
    except RuntimeError as error:
        first = step.__code__.co_firstlineno
        own = [
            line - first + 1
            for frame, line in traceback.walk_tb(error.__traceback__)
            if frame.f_code is step.__code__
        ]
        said = f"{type(error).__name__}: {error}".partition("\n")[0]
        return Forgotten(said, own[-1] if own else None)
    return Forgotten()
