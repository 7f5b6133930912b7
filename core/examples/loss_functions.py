"""How a loss of core.loss_functions is used."""

import torch

from core.loss_functions import GaussianLoss


def try_GaussianLoss() -> None:
    device = torch.device("cuda")
    criterion = GaussianLoss().to(device)
    outputs = torch.rand(64, 1, device=device)
    targets = torch.rand(64, 1, device=device)
    loss = criterion(outputs, targets)
    print(loss)
