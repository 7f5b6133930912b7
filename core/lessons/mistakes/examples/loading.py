"""Loud mistakes (they raise errors): bad files, another model's weights."""

from dataclasses import asdict

import torch

from core.config import RunConfig
from core.halves import define
from core.lessons.mistakes.examples.fixtures import saved, saved_on_cuda
from core.models import ANN, CNN


def cuda_checkpoint(device):
    checkpoint = saved_on_cuda(ANN())
    model = ANN()
    state = torch.load(checkpoint)  # broken
    state = torch.load(  # fixed
        checkpoint,  # fixed
        map_location="cpu",  # fixed
    )  # fixed
    return model.load_state_dict(state)


def pickle_refused(device):
    config = RunConfig(epochs=5)  # broken
    config = asdict(RunConfig(epochs=5))  # fixed
    file = saved({"config": config})
    data = torch.load(file, weights_only=True)
    return data["config"]  # broken
    return RunConfig(**data["config"])  # fixed


def wrong_architecture(device):
    checkpoint = saved(CNN().state_dict())
    model = ANN()  # broken
    model = CNN()  # fixed
    state = torch.load(checkpoint)
    return model.load_state_dict(state)


define(globals())
