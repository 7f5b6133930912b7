"""The three ways to feed a model. For one seed, all three give the same batches.

- "dataloader": torch's DataLoader over torchvision's FashionMNIST and ToTensor, as in
  every textbook. For the task regression, the DataLoader is over a TensorDataset.
- "memory": the images are decoded once; a batch is picked out of one large tensor.
- "device": the large tensor is on the device already, so nothing has to be moved.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, TensorDataset

from core.data.datasets import Split
from to_device.errors import ExplainedError

if TYPE_CHECKING:  # importing torchvision takes time, and may fail
    from torchvision.datasets import VisionDataset

MISMATCH = (
    "torchvision doesn't work with the installed version of torch ({error}). Install a "
    "matching pair: pip install --upgrade torch torchvision. Until then, set the feed "
    "to memory or device; neither needs torchvision."
)


class EpochOrder:
    """Draws the order of the images, and which of them to flip, anew for each epoch."""

    def __init__(self, size: int, seed: int | None, augment: bool) -> None:
        self.size = size
        self.augment = augment
        # A generator of its own, so that dropout and the order don't affect each other.
        self.generator = None if seed is None else torch.Generator().manual_seed(seed)

    def draw(self) -> tuple[Tensor, Tensor | None]:
        """The order, int64 (size,), and which images to flip, bool (size,) or None."""
        if self.generator is None:
            return torch.arange(self.size), None
        order = torch.randperm(self.size, generator=self.generator)
        if not self.augment:
            return order, None
        return order, torch.rand(self.size, generator=self.generator) < 0.5


def flip(images: Tensor, flips: Tensor) -> Tensor:
    """Mirror those of the images (N, 1, 28, 28) that `flips` (N,) marks."""
    return torch.where(flips.view(-1, 1, 1, 1), images.flip(-1), images)


class TensorBatches:
    """Picks batches out of the split's tensors, on the device where the tensors are."""

    def __init__(self, split: Split, batch_size: int, order: EpochOrder) -> None:
        self.images, self.labels = split.images, split.labels
        self.batch_size = batch_size
        self.order = order

    def __len__(self) -> int:
        return -(-len(self.labels) // self.batch_size)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        order, flips = self.order.draw()
        order = order.to(self.images.device)  # moved once an epoch, not with each batch
        flips = None if flips is None else flips.to(self.images.device)
        for start in range(0, len(order), self.batch_size):
            batch = slice(start, start + self.batch_size)
            images = self.images.index_select(0, order[batch])
            if flips is not None:
                images = flip(images, flips[batch])
            yield images, self.labels.index_select(0, order[batch])


class LoaderBatches:
    """Batches from a DataLoader, which in every epoch makes a PIL image of each image.

    Pinned batches are already on their way to the device before the loop calls `.to`.
    """

    def __init__(
        self,
        split: Split,
        batch_size: int,
        order: EpochOrder,
        device: torch.device,
        num_workers: int,
        pin_memory: bool,
        non_blocking: bool,
    ) -> None:
        self.order = order
        self.device = device
        self.non_blocking = non_blocking
        self.batch_size = batch_size
        self.indices: list[int] = []  # this epoch's order; the loader iterates over it
        dataset: Dataset = TensorDataset(split.images, split.labels)
        if split.images.dtype == torch.uint8:
            dataset = textbook_dataset(split)
        self.loader = DataLoader(
            dataset,
            batch_size,
            sampler=self.indices,
            # Without a generator, the loader would draw from torch's global generator,
            # from which dropout draws too.
            generator=torch.Generator(),
            num_workers=num_workers,
            pin_memory=pin_memory,
            persistent_workers=num_workers > 0,
        )

    def __len__(self) -> int:
        return -(-self.order.size // self.batch_size)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        order, flips = self.order.draw()
        self.indices[:] = order.tolist()
        start = 0
        for images, labels in self.loader:
            # Pinned batches are copied here, while the host goes on. The
            # training loop moves all others.
            if self.loader.pin_memory:
                images = images.to(self.device, non_blocking=self.non_blocking)
                labels = labels.to(self.device, non_blocking=self.non_blocking)
            if flips is not None:
                some = flips[start : start + len(labels)].to(images.device)
                images = flip(images, some)
            yield images, labels
            start += len(labels)


def textbook_dataset(split: Split) -> "VisionDataset":
    """torchvision's own FashionMNIST with ToTensor, over a split that is in memory.

    Items are the image, float32 (1, 28, 28) in 0..1, and its label.
    """
    try:
        from torchvision import datasets
        from torchvision.transforms import ToTensor
    except (ImportError, RuntimeError, AttributeError) as error:
        raise ExplainedError(MISMATCH.format(error=error)) from None
    dataset = datasets.FashionMNIST.__new__(datasets.FashionMNIST)
    # FashionMNIST.__init__ would read the files again, so its parent's is called.
    datasets.VisionDataset.__init__(dataset, "", transform=ToTensor())
    dataset.data, dataset.targets = split.images.squeeze(1), split.labels
    return dataset


def in_order(
    split: Split, device: torch.device, feed: str = "memory", batch_size: int = 1000
) -> TensorBatches | LoaderBatches:
    """The split in file order, in large batches so that evaluation is quick."""
    return make(feed, split, batch_size, device)


def make(
    feed: str,
    split: Split,
    batch_size: int,
    device: torch.device,
    seed: int | None = None,
    augment: bool = False,
    num_workers: int = 0,
    pin_memory: bool = False,
    non_blocking: bool = True,
) -> TensorBatches | LoaderBatches:
    """Make the feed with this name. Without a seed, batches come in file order."""
    order = EpochOrder(len(split), seed, augment)
    if feed == "dataloader":
        return LoaderBatches(
            split, batch_size, order, device, num_workers, pin_memory, non_blocking
        )
    if feed == "device":
        split = Split(split.images.to(device), split.labels.to(device))
    return TensorBatches(split, batch_size, order)
