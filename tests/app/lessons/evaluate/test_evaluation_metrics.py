import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from core.lessons.evaluate.evaluation import (
    confusion_matrix,
    per_class,
    wilson_interval,
)

COUNTS = st.integers(1, 100_000).flatmap(
    lambda total: st.tuples(st.integers(0, total), st.just(total))
)


@pytest.mark.parametrize(
    ("correct", "total", "low", "high"),
    [
        (0, 10, 0.0, 0.2775),
        (10, 10, 0.7225, 1.0),
        # Newcombe (1998), Statistics in Medicine 17, 857-872, table I, method 3.
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_as_published(correct: int, total: int, low: float, high: float) -> None:
    assert wilson_interval(correct, total) == pytest.approx((low, high), abs=6e-5)


@given(COUNTS)
def test_wilson_holds_the_share(counts: tuple[int, int]) -> None:
    correct, total = counts
    low, high = wilson_interval(correct, total)
    assert 0 <= low <= correct / total <= high <= 1


def test_figures_of_classes_by_hand() -> None:
    targets = torch.tensor([0, 0, 0, 1, 1, 2])
    predictions = torch.tensor([0, 0, 1, 1, 1, 0])
    confusion = confusion_matrix(predictions, targets, 4)
    assert confusion.tolist() == [[2, 1, 0, 0], [0, 2, 0, 0], [1, 0, 0, 0], [0] * 4]
    recognized = [[2 / 3, 2 / 3, 2 / 3], [2 / 3, 1.0, 4 / 5]]
    assert torch.allclose(
        per_class(confusion), torch.tensor(recognized + [[0.0] * 3] * 2)
    )
