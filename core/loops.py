"""Train and evaluate: the two loops that this course is about, and nothing else.

Before either loop starts, `model.to(device)` has moved the model once. The
loops move the batches, one by one, as they are needed. train_epoch yields the
loss of each step, so that its caller can report it, pause, or stop.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

Batches = Iterable[tuple[Tensor, Tensor]]  # inputs (N, ...), targets (N, ...)


def train_epoch(
    model: nn.Module,
    batches: Batches,
    criterion: nn.Module,
    optimizer: Optimizer,
    device: torch.device,
    scheduler: LRScheduler | None = None,
) -> Iterator[Tensor]:
    """One pass over the batches; yields each loss, still on the device."""
    model.train()
    for inputs, targets in batches:
        inputs = inputs.to(device)
        targets = targets.to(device)

        optimizer.zero_grad()
        outputs = model(inputs)
        loss = criterion(outputs, targets)
        loss.backward()
        optimizer.step()

        if scheduler is not None:
            scheduler.step()
        # Not loss.item(): the CPU would wait for the device in every step.
        yield loss.detach()


def predict(
    model: nn.Module, batches: Batches, device: torch.device
) -> tuple[Tensor, Tensor]:
    """The model's outputs (N, ...) for all batches, and the targets."""
    model.eval()
    outputs, expected = [], []
    with torch.inference_mode():
        for inputs, targets in batches:
            outputs.append(model(inputs.to(device)))
            expected.append(targets.to(device))
    return torch.cat(outputs), torch.cat(expected)


@dataclass(frozen=True)
class Score:
    """How well the outputs fit the targets, over all samples at once."""

    loss: float  # mean over the samples
    correct: int
    total: int

    @property
    def accuracy(self) -> float:
        return self.correct / self.total


@dataclass(frozen=True)
class RegressionScore:
    """How well the outputs fit targets that are numbers, over all samples."""

    loss: float  # mean over the samples
    r2: float  # 1: all of the targets' variance is explained; 0: none
    rmse: float  # root mean squared error, in the targets' unit
    total: int


def score(outputs: Tensor, targets: Tensor, criterion: nn.Module) -> Score:
    """Loss and accuracy of logits (N, classes) for labels (N,)."""
    correct = (outputs.argmax(dim=1) == targets).sum()
    loss = criterion(outputs, targets)
    return Score(loss.item(), int(correct.item()), len(targets))


def score_regression(
    outputs: Tensor, targets: Tensor, criterion: nn.Module
) -> RegressionScore:
    """Loss, R², and RMSE of the outputs (N, 1) for the targets (N, 1)."""
    error = (outputs - targets).square().mean()
    variance = (targets - targets.mean()).square().mean()
    r2 = 1 - error / variance
    loss = criterion(outputs, targets)
    return RegressionScore(loss.item(), r2.item(), error.sqrt().item(), len(targets))
