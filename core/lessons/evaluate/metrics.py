"""Figures that say how good predictions are, by torchmetrics where it has them."""

from math import sqrt
from statistics import NormalDist

import torch
from torch import Tensor

from core.errors import ExplainedError


def confusion_matrix(predictions: Tensor, targets: Tensor, classes: int) -> Tensor:
    """Counts int64 (classes, classes): row the true class, column the predicted."""
    return _torchmetrics().multiclass_confusion_matrix(
        predictions, targets, num_classes=classes
    )


def per_class(predictions: Tensor, targets: Tensor, classes: int) -> Tensor:
    """float32 (classes, 3): precision, recall and F1 of each class; 0 where undefined.

    Predictions and targets are class numbers (N,).
    """
    by = _torchmetrics()
    figures = (by.multiclass_precision, by.multiclass_recall, by.multiclass_f1_score)
    given = {"num_classes": classes, "average": None}
    return torch.stack([each(predictions, targets, **given) for each in figures], dim=1)


def wilson_interval(
    correct: int, total: int, confidence: float = 0.95
) -> tuple[float, float]:
    """Interval for a share of `total`: Wilson (1927), JASA 22, 209-212.

    Unlike the textbook's p ± 1.96 √(p(1-p)/n) it stays within 0 and 1.
    """
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share = correct / total
    middle = share + z * z / (2 * total)
    reach = z * sqrt(share * (1 - share) / total + z * z / (4 * total * total))
    scale = 1 + z * z / total
    # At its ends the interval meets the share, but for rounding.
    low, high = (middle - reach) / scale, (middle + reach) / scale
    return max(0.0, min(low, share)), min(1.0, max(high, share))


def _torchmetrics():
    """Imported late: it takes seconds, and brings torchvision with it."""
    try:
        from torchmetrics.functional import classification
    except (ImportError, RuntimeError, AttributeError) as error:
        raise ExplainedError(
            f"torchmetrics, or the torchvision that it uses, can't be used with the "
            f"torch that is installed ({error}). Install versions that fit: "
            "pip install --upgrade torch torchvision torchmetrics."
        ) from None
    return classification
