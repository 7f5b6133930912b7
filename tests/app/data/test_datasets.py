from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import torch

from core.config import TRAIN_SAMPLES
from core.data import datasets
from core.data.fashion_mnist import DatasetStatus
from to_device.errors import ExplainedError

TASKS = ["sprites", pytest.param("fashion-mnist", marks=pytest.mark.real_data)]


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], datasets.Dataset]:
    """data.load as a new process has it: nothing is remembered yet."""
    fresh = cache(datasets.load.__wrapped__)
    monkeypatch.setattr(datasets, "load", fresh)
    return fresh


@pytest.mark.parametrize("task", TASKS)
def test_layout(task: str) -> None:
    dataset = datasets.load(task)
    assert len(dataset.train) == TRAIN_SAMPLES[task]
    for split in (dataset.train, dataset.test):
        assert split.images.shape == (len(split), 1, 28, 28)
        assert split.images.dtype == torch.uint8
        assert split.labels.shape == (len(split),)
        assert split.labels.dtype == torch.int64
        assert split.images.device.type == split.labels.device.type == "cpu"


@pytest.mark.parametrize("task", TASKS)
def test_no_test_image_was_trained_on(task: str) -> None:
    dataset = datasets.load(task)
    images = {image.numpy().tobytes() for image in dataset.train.images}
    unseen = sum(i.numpy().tobytes() not in images for i in dataset.test.images)
    assert unseen > 0.999 * len(dataset.test)


@pytest.mark.real_data
def test_fashion_mnist_is_the_one_that_is_known() -> None:
    dataset = datasets.load("fashion-mnist")
    assert (len(dataset.train), len(dataset.test)) == (60_000, 10_000)
    assert dataset.classes[int(dataset.train.labels[0])] == "Ankle boot"
    assert dataset.test.labels[:5].tolist() == [9, 2, 1, 1, 6]
    pixels = dataset.train.images.float() / 255
    assert pixels.mean().item() == pytest.approx(0.2860, abs=1e-4)
    assert pixels.std().item() == pytest.approx(0.3530, abs=1e-4)


def test_status_where_files_are_damaged(
    load: Callable, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Damaged files have a source, and the problem that loading them has.

    The folder was named, so fetching the files elsewhere would not help.
    """
    (tmp_path / "train-images-idx3-ubyte").write_bytes(b"half")
    monkeypatch.setenv("FASHION_MNIST_DIR", str(tmp_path))
    with pytest.raises(ExplainedError) as caught:
        load("fashion-mnist")
    assert datasets.status() == DatasetStatus(str(tmp_path), str(caught.value), True)


@pytest.mark.real_data
def test_failure_is_not_remembered(
    load: Callable, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("FASHION_MNIST_DIR", str(tmp_path))
        with pytest.raises(ExplainedError):
            load("fashion-mnist")
    assert datasets.status().problem is None
    assert len(load("fashion-mnist").test) == 10_000
