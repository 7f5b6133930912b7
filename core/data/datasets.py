"""Whole datasets as tensors in memory. core.data.feeds makes batches of them."""

import os
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from core.data import curve, fashion_mnist, sprites
from core.data.fashion_mnist import DatasetStatus
from to_device.errors import ExplainedError

SPRITES_TRAIN, SPRITES_TEST = 12_000, 2_000  # images


@dataclass(frozen=True, eq=False)
class Split:
    """Images with their labels, or for regression x and y."""

    images: Tensor  # uint8 (N, 1, 28, 28), on the host; x: float32 (N, 1)
    labels: Tensor  # int64 (N,), 0 to 9; y: float32 (N, 1)

    def __len__(self) -> int:
        return len(self.labels)

    def first(self, n: int) -> "Split":
        return Split(self.images[:n], self.labels[:n])


@dataclass(frozen=True, eq=False)
class Dataset:
    source: str  # the folder of the files, or the program that draws the data
    classes: tuple[str, ...]  # empty for regression
    train: Split
    test: Split


@cache  # once in each process; failures are not cached
def load(task: str) -> Dataset:
    """The dataset of a task. Raises ExplainedError if files are missing or damaged."""
    if task == "sprites":
        train = Split(*sprites.draw(SPRITES_TRAIN, seed=0))
        test = Split(*sprites.draw(SPRITES_TEST, seed=1))
        return Dataset("core/data/sprites.py", fashion_mnist.CLASSES, train, test)
    if task == "regression":
        train = _points(curve.TRAIN, seed=0)
        test = _points(curve.TEST, seed=1)
        return Dataset("core/data/curve.py", (), train, test)
    assert task == "fashion-mnist"
    folder, files = fashion_mnist.read()

    def tensor(name: str) -> Tensor:
        return torch.frombuffer(bytearray(files[name]), dtype=torch.uint8)

    def split(part: str) -> Split:
        images = tensor(f"{part}-images-idx3-ubyte").view(-1, 1, 28, 28)
        return Split(images, tensor(f"{part}-labels-idx1-ubyte").long())

    return Dataset(str(folder), fashion_mnist.CLASSES, split("train"), split("t10k"))


def _points(count: int, seed: int) -> Split:
    x, y = torch.tensor(curve.draw(count, seed)).split(1, dim=1)
    return Split(x.contiguous(), y.contiguous())


def status() -> DatasetStatus:
    """Where Fashion-MNIST's files are, and what is wrong with them, if anything."""
    named = "FASHION_MNIST_DIR" in os.environ
    folder = fashion_mnist.find()
    if folder is None:
        return DatasetStatus(named=named)
    try:
        return DatasetStatus(load("fashion-mnist").source, named=named)
    except ExplainedError as error:
        return DatasetStatus(str(folder), str(error), named)
