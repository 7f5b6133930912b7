from itertools import chain

import numpy as np
import pytest

from core.data import datasets
from core.lessons.scale import sampler


@pytest.mark.parametrize("images", [10, 11])
def test_the_ranks_share_all_images_evenly(images):
    for epoch in sampler.orders(images, calls_set_epoch=True):
        assert len({len(share) for share in epoch}) == 1
        fed = list(chain(*epoch))
        assert set(fed) == set(range(images))
        assert len(fed) == images + images % 2


def test_without_set_epoch_each_epoch_is_the_first():
    first, *others = sampler.orders(11, calls_set_epoch=False)
    assert others == [first] * (sampler.EPOCHS - 1)
    right = sampler.orders(11, calls_set_epoch=True)
    assert right[0] == first
    assert all(epoch not in right[:index] for index, epoch in enumerate(right))


def test_the_first_batch_is_shared():
    first, second = sampler.first_batch("sprites", 2, 64)
    assert first.shape == second.shape == (32, 28, 28)
    assert not np.array_equal(first, second)
    images = datasets.load("sprites").train.images
    (order, _), *_ = sampler.orders(len(images), calls_set_epoch=True)
    assert np.array_equal(first[0], images[order[0], 0].numpy())
