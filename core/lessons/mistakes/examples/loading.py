"""Loud: files that torch.load refuses, and weights that are another model's."""

from dataclasses import asdict

import torch

from core.config import RunConfig
from core.lessons.mistakes.examples.fixtures import saved, saved_on_cuda
from core.models import ANN, CNN


def broken_cuda_checkpoint(device):
    checkpoint = saved_on_cuda(ANN())
    model = ANN()
    state = torch.load(checkpoint)
    return model.load_state_dict(state)


def fixed_cuda_checkpoint(device):
    checkpoint = saved_on_cuda(ANN())
    model = ANN()
    state = torch.load(
        checkpoint,
        map_location="cpu",
    )
    return model.load_state_dict(state)


def broken_pickle_refused(device):
    config = RunConfig(epochs=5)
    file = saved({"config": config})
    data = torch.load(file, weights_only=True)
    return data["config"]


def fixed_pickle_refused(device):
    config = asdict(RunConfig(epochs=5))
    file = saved({"config": config})
    data = torch.load(file, weights_only=True)
    return RunConfig(**data["config"])


def broken_wrong_architecture(device):
    checkpoint = saved(CNN().state_dict())
    model = ANN()
    state = torch.load(checkpoint)
    return model.load_state_dict(state)


def fixed_wrong_architecture(device):
    checkpoint = saved(CNN().state_dict())
    model = CNN()
    state = torch.load(checkpoint)
    return model.load_state_dict(state)
