"""How the models of core.models are used."""

import torch

from core.models import ANN, CNN, SimpleRegressionNet


def try_ANN() -> None:
    device = torch.device("cuda")
    model = ANN().to(device)
    images = torch.randint(0, 256, (64, 1, 28, 28), dtype=torch.uint8)
    logits = model(images.to(device))
    print(logits.shape)


def try_CNN() -> None:
    device = torch.device("cuda")
    model = CNN().to(device)
    images = torch.randint(0, 256, (64, 1, 28, 28), dtype=torch.uint8)
    logits = model(images.to(device))
    print(logits.shape)


def try_SimpleRegressionNet() -> None:
    device = torch.device("cuda")
    model = SimpleRegressionNet().to(device)
    x = torch.linspace(0, 1, 64).unsqueeze(1)
    y = model(x.to(device))
    print(y.shape)
