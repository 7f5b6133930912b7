"""The losses. One has a parameter of its own: it is moved and trained as models are."""

import torch
from torch import Tensor, nn


class GaussianLoss(nn.Module):
    """Negative log-likelihood of a normal distribution, its scale learned.

    nn.GaussianNLLLoss with the variance as a parameter, and without its check
    that none is negative, for which the CPU would wait in every step.
    """

    def __init__(self) -> None:
        super().__init__()
        # The logarithm: whatever the optimizer makes of it, sigma is positive.
        # One dimension, not none: a CPU tensor without dimensions may meet
        # tensors of any device, and nobody would notice that it wasn't moved.
        self.log_sigma = nn.Parameter(torch.zeros(1))

    def forward(self, outputs: Tensor, targets: Tensor) -> Tensor:
        errors = (targets - outputs) / self.log_sigma.exp()
        return (self.log_sigma + errors.square() / 2).mean()


CRITERIA: dict[str, type[nn.Module]] = {
    "cross-entropy": nn.CrossEntropyLoss,
    "mse": nn.MSELoss,
    "gaussian": GaussianLoss,
}


def build(name: str) -> nn.Module:
    """A new criterion on the CPU."""
    return CRITERIA[name]()


def learned_noise(criterion: nn.Module) -> float | None:
    """The noise scale that the criterion has learned; None if it has none to learn."""
    if not isinstance(criterion, GaussianLoss):
        return None
    return criterion.log_sigma.exp().item()
