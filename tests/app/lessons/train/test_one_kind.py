import torch

from core.lessons.train import one_kind


def test_accuracy_is_not_the_whole_story() -> None:
    targets = torch.tensor([[1.0], [0.0], [0.0], [0.0]])
    never = one_kind.score(torch.full((4, 1), -1.0), targets)
    assert (never.accuracy, never.always_no, never.recall) == (0.75, 0.75, 0.0)
    right = one_kind.score(targets * 2 - 1, targets)
    assert (right.accuracy, right.recall) == (1.0, 1.0)
