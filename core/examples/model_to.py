"""How a function of core.lessons.model.model_to is called."""

import torch

from core.lessons.model.model_to import step


def try_step() -> None:
    device = torch.device("cuda")
    step(device, moved={"model", "loss", "inputs"})
