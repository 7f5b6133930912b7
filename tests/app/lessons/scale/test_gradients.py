import pytest
import torch

from core import models
from core.data import datasets
from core.lessons.scale import gradients


@pytest.mark.parametrize(("model", "equal"), [("ann", True), ("cnn", False)])
def test_the_average_over_two_ranks_is_the_gradient_of_the_whole_batch(model, equal):
    result = gradients.measure(2, "sprites", model, 32)
    first, second = result.shares
    assert (first.difference < 1e-5 * first.greatest) == equal
    assert first.by_ddp <= 1e-6 * first.greatest
    assert result.agree
    assert first.own != second.own
    for *parts, averaged in zip(first.own, second.own, first.averaged, strict=True):
        assert sum(parts) / 2 == pytest.approx(averaged, abs=1e-6)
    assert len(result.classes) == len(first.averaged) == len(first.alone) == 10


def test_models_that_are_compared_drop_no_units():
    batch = datasets.load("sprites").train.first(8)
    model, vectors = models.build("cnn"), []
    for _ in range(2):
        model.zero_grad()
        gradients.compute(model, batch.images, batch.labels)
        vectors.append(gradients.gradients(model))
    assert torch.equal(*vectors)
