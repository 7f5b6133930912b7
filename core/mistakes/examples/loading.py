"""Loud: files that torch.load refuses, and weights that are another model's."""

import io
from dataclasses import asdict

import torch

from core.config import RunConfig
from core.models import ANN, CNN
from core.state_dict import pack


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


def saved(content):
    """What torch.save makes of it, as a file that is to be read."""
    return io.BytesIO(pack(content))


def saved_on_cuda(model):
    """A file as torch.save writes it for a model on a GPU, made without one.

    All that differs is the tag on each storage that says where it was.
    """
    torch.serialization.register_package(
        0, lambda storage: "cuda:0", lambda storage, tag: None
    )
    return saved(model.state_dict())
