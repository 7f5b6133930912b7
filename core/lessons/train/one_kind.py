"""Train a model to tell one class from the rest: one logit, and BCEWithLogitsLoss."""

import torch
from torch import Tensor, nn

from core import loops
from core.data import datasets
from core.lessons.train.train_result import OneKindScore
from core.models import as_floats

KIND = 6  # the number of the class shirt, which is the hardest to recognize
BATCH_SIZE = 64
EPOCHS = 3


def score(logits: Tensor, targets: Tensor) -> OneKindScore:
    """How well logits (N, 1) fit targets (N, 1), which are 0.0 or 1.0."""
    is_kind = targets == 1
    says_yes = logits > 0  # the same as sigmoid(logits) > 0.5
    return OneKindScore(
        (says_yes == is_kind).float().mean().item(),
        (~is_kind).float().mean().item(),
        says_yes[is_kind].float().mean().item(),
    )


def train() -> OneKindScore:
    """Train a small network to recognize one kind of sprite, on the CPU."""
    dataset, cpu = datasets.load("sprites"), torch.device("cpu")
    train, test = dataset.train, dataset.test
    images = as_floats(train.images)
    # Floats (N, 1), like the outputs; cross-entropy takes integers (N,).
    targets = (train.labels == KIND).float().unsqueeze(1)

    model = nn.Sequential(
        nn.Flatten(), nn.Linear(28 * 28, 64), nn.ReLU(), nn.Linear(64, 1)
    )
    criterion = nn.BCEWithLogitsLoss()  # it includes the sigmoid
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(EPOCHS):
        order = torch.randperm(len(images)).split(BATCH_SIZE)
        feed = [(images[batch], targets[batch]) for batch in order]
        for _ in loops.train_epoch(model, feed, criterion, optimizer, cpu):
            pass

    expected = (test.labels == KIND).float().unsqueeze(1)
    logits, _ = loops.predict(model, [(as_floats(test.images), expected)], cpu)
    return score(logits, expected)
