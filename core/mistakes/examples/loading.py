"""Loud: files that torch.load refuses, and weights that are another model's."""

import io
from dataclasses import asdict

import torch

from core.config import RunConfig
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
    file = io.BytesIO()
    config = RunConfig(epochs=5)
    torch.save({"config": config}, file)
    file.seek(0)
    loaded = torch.load(
        file,
        weights_only=True,
    )
    return loaded["config"]


def fixed_pickle_refused(device):
    file = io.BytesIO()
    config = asdict(RunConfig(epochs=5))
    torch.save({"config": config}, file)
    file.seek(0)
    loaded = torch.load(
        file,
        weights_only=True,
    )
    return RunConfig(**loaded["config"])


def broken_wrong_architecture(device):
    checkpoint = saved(CNN())
    model = ANN()
    state = torch.load(checkpoint)
    return model.load_state_dict(state)


def fixed_wrong_architecture(device):
    checkpoint = saved(CNN())
    model = CNN()
    state = torch.load(checkpoint)
    return model.load_state_dict(state)


def saved(model):
    """The model's weights as torch.save writes them, a file to be read."""
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    return file


def saved_on_cuda(model):
    """A file as torch.save writes it for a model on a GPU, made without one.

    All that differs is the tag on each storage that says where it was.
    """
    torch.serialization.register_package(
        0, lambda storage: "cuda:0", lambda storage, tag: None
    )
    return saved(model)
