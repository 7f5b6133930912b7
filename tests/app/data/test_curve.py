from statistics import fmean, stdev

import pytest
import torch

from core.data import curve, datasets


def test_points_repeat_with_their_seed() -> None:
    assert curve.draw(50, seed=1) == curve.draw(50, seed=1)
    assert curve.draw(50, seed=1) != curve.draw(50, seed=2)


def test_a_longer_draw_begins_with_the_shorter() -> None:
    assert curve.draw(100, seed=0)[:30] == curve.draw(30, seed=0)


def test_points_scatter_around_the_curve() -> None:
    points = curve.draw(20_000, seed=5)
    errors = [y - curve.f(x) for x, y in points]
    assert fmean(errors) == pytest.approx(0, abs=0.006)
    assert stdev(errors) == pytest.approx(curve.NOISE, rel=0.02)
    xs = [x for x, _ in points]
    assert curve.LOW <= min(xs) < max(xs) <= curve.HIGH
    assert fmean(xs) == pytest.approx((curve.LOW + curve.HIGH) / 2, abs=0.05)
    assert (curve.POSITIONS[0], curve.POSITIONS[-1]) == (curve.LOW, curve.HIGH)


def test_the_dataset_is_the_curve() -> None:
    dataset = datasets.load("regression")
    assert (len(dataset.train), len(dataset.test)) == (curve.TRAIN, curve.TEST)
    for split in (dataset.train, dataset.test):
        for tensor in (split.images, split.labels):
            assert tensor.shape == (len(split), 1)
            assert tensor.dtype == torch.float32
            assert tensor.is_contiguous()
    x, y = torch.tensor(curve.draw(7, seed=0)).unbind(1)
    assert torch.equal(dataset.train.images[:7, 0], x)
    assert torch.equal(dataset.train.labels[:7, 0], y)
    positions = set(dataset.train.images.flatten().tolist())
    assert not positions & set(dataset.test.images.flatten().tolist())
