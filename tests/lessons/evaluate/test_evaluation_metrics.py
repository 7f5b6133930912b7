"""Figures of quality, against published and hand-worked ones."""

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

# Six images, three classes; class 2 is never recognized.
TARGETS = torch.tensor([0, 0, 0, 1, 1, 2])
PREDICTIONS = torch.tensor([0, 0, 1, 1, 1, 0])


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


def test_confusion_rows_are_true_classes() -> None:
    found = confusion_matrix(PREDICTIONS, TARGETS, 3)
    assert found.tolist() == [[2, 1, 0], [0, 2, 0], [1, 0, 0]]
    assert found.dtype == torch.int64


def test_classes_that_do_not_occur_have_their_row() -> None:
    found = confusion_matrix(PREDICTIONS, TARGETS, 4)
    assert found.shape == (4, 4)
    assert found[3].sum() == found[:, 3].sum() == 0


def test_per_class_by_hand() -> None:
    found = per_class(PREDICTIONS, TARGETS, 3)
    expected = torch.tensor(
        [
            [2 / 3, 2 / 3, 2 / 3],  # called 0: 3 images, 2 are; of 3 that are, 2 called
            [2 / 3, 1.0, 4 / 5],
            [0.0, 0.0, 0.0],
        ]
    )
    assert torch.allclose(found, expected)
