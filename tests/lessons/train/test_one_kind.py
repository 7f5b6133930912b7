"""One kind against the rest: what its accuracy is, and what it hides."""

import pytest
import torch
from torch import nn

from core.lessons.train import one_kind


def test_accuracy_is_not_the_whole_story() -> None:
    targets = torch.tensor([[1.0], [0.0], [0.0], [0.0]])
    never = one_kind.score(torch.full((4, 1), -1.0), targets)
    assert (never.accuracy, never.always_no, never.found) == (0.75, 0.75, 0.0)
    right = one_kind.score(targets * 2 - 1, targets)
    assert (right.accuracy, right.found) == (1.0, 1.0)


def test_a_logit_above_zero_is_a_probability_above_a_half() -> None:
    logits, targets = torch.randn(100, 1), torch.randint(2, (100, 1)).float()
    assert torch.equal(logits > 0, logits.sigmoid() > 0.5)
    inside = nn.BCEWithLogitsLoss()(logits, targets)
    assert inside.item() == pytest.approx(
        nn.BCELoss()(logits.sigmoid(), targets).item()
    )


def test_the_loss_wants_floats_of_the_outputs_shape() -> None:
    criterion = nn.BCEWithLogitsLoss()
    for targets in (torch.ones(4), torch.ones(4, 1).long()):
        with pytest.raises((ValueError, RuntimeError)):
            criterion(torch.zeros(4, 1), targets)
