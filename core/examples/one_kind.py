"""How a function of core.lessons.train.one_kind is called."""

import torch

from core.lessons.train.one_kind import score


def try_score() -> None:
    device = torch.device("cuda")
    logits = torch.randn(64, 1, device=device)
    targets = (torch.rand(64, 1, device=device) > 0.9).float()
    print(score(logits, targets))
