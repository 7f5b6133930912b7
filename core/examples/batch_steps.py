"""How a function of core.lessons.model.batch_steps is called."""

import torch
from torch import nn

from core.lessons.model.batch_steps import walk
from core.models import ANN


def try_walk() -> None:
    device = torch.device("cuda")
    model = ANN().to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters())
    inputs = torch.randint(0, 256, (64, 1, 28, 28), dtype=torch.uint8)
    targets = torch.randint(0, 10, (64,))

    walk(model, inputs, targets, criterion, optimizer, device)
