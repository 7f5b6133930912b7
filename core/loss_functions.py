"""The loss functions. GaussianLoss has a parameter, which is moved and trained too."""

import torch
from torch import Tensor, nn


class GaussianLoss(nn.Module):
    """Gaussian negative log-likelihood with a learned scale.

    It is nn.GaussianNLLLoss with the variance as a parameter, but without the
    check for negative variances, which makes the CPU wait in every step.
    """

    def __init__(self) -> None:
        super().__init__()
        # Learn sigma's logarithm: then sigma is positive after any update.
        # The shape is (1,) and not (): torch combines a CPU tensor without
        # dimensions with any device's tensors, so nobody would notice that
        # the parameter wasn't moved.
        self.log_sigma = nn.Parameter(torch.zeros(1))

    def forward(self, outputs: Tensor, targets: Tensor) -> Tensor:
        errors = (targets - outputs) / self.log_sigma.exp()
        return (self.log_sigma + errors.square() / 2).mean()


CRITERIA: dict[str, type[nn.Module]] = {
    "cross-entropy": nn.CrossEntropyLoss,
    "mse": nn.MSELoss,
    "gaussian": GaussianLoss,
}


def build(name: str, label_smoothing: float = 0.0) -> nn.Module:
    """`label_smoothing`: the share of each target that all classes get alike."""
    if label_smoothing:
        return nn.CrossEntropyLoss(label_smoothing=label_smoothing)
    return CRITERIA[name]()


def learned_noise(criterion: nn.Module) -> float | None:
    """The noise's learned standard deviation; None if the criterion learns none."""
    if not isinstance(criterion, GaussianLoss):
        return None
    return criterion.log_sigma.exp().item()
