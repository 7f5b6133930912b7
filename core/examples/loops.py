"""How the functions of core.loops are called."""

import torch
from torch import nn

from core.loops import predict, score, train_epoch


def try_train_epoch() -> None:
    device = torch.device("cuda")
    model = nn.Sequential(nn.Flatten(), nn.Linear(784, 10)).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    images, labels = torch.rand(256, 1, 28, 28), torch.randint(0, 10, (256,))
    batches = list(zip(images.split(64), labels.split(64)))

    for loss in train_epoch(model, batches, criterion, optimizer, device):
        print(loss)


def try_predict() -> None:
    device = torch.device("cuda")
    model = nn.Sequential(nn.Flatten(), nn.Linear(784, 10), nn.Dropout()).to(device)
    images, labels = torch.rand(256, 1, 28, 28), torch.randint(0, 10, (256,))
    batches = list(zip(images.split(64), labels.split(64)))

    outputs, targets = predict(model, batches, device)
    correct = (outputs.argmax(dim=1) == targets).sum()
    print(correct.item(), "of", len(targets))


def try_score() -> None:
    device = torch.device("cuda")
    outputs = torch.rand(256, 10, device=device)
    targets = torch.randint(0, 10, (256,), device=device)
    print(score(outputs, targets, nn.CrossEntropyLoss()))
