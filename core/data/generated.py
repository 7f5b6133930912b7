"""Random images in place of torchvision's datasets, for a visitor's script.

A script that is checked can't download anything, and a check asks where tensors are,
not what is in them. The number of images, their size, and the number of classes are
the real ones, so a script may split them as usual.
"""

from typing import Any

import torch
from torch import Tensor

MNIST = 60_000, 10_000  # images to train with, and to test with
EMNIST = {  # the same by split, at most as many as take 100 MB
    "byclass": (120_000, 116_323),
    "bymerge": (120_000, 116_323),
    "balanced": (112_800, 18_800),
    "letters": (120_000, 20_800),
    "digits": (120_000, 40_000),
    "mnist": MNIST,
}
CIFAR = {"CIFAR10": 10, "CIFAR100": 100}  # classes
CIFAR_IMAGES = 50_000, 10_000
DIFFERENT = 1_000  # so many images are drawn, and come again and again


def images(count: int, *shape: int) -> Tensor:
    """Images of random bytes, (count, *shape)."""
    own = torch.Generator().manual_seed(0)  # so the script's seed counts as usual
    drawn = torch.randint(256, (DIFFERENT, *shape), generator=own, dtype=torch.uint8)
    return drawn.repeat(-(-count // DIFFERENT), *[1] * len(shape))[:count]


def stand_in() -> None:
    """Let the datasets that check.USES_DATASETS names make images. Call this once."""
    from torchvision import datasets

    def load(this: Any) -> tuple[Tensor, Tensor]:
        split = getattr(this, "split", "mnist")
        classes = len(datasets.EMNIST.classes_split_dict[split])
        count = EMNIST[split][not this.train]
        return images(count, 28, 28), torch.arange(count) % classes

    def cifar(
        this: Any,
        root: Any = "data",
        train: bool = True,
        transform: Any = None,
        target_transform: Any = None,
        *_: Any,
        **__: Any,
    ) -> None:
        change = {"transform": transform, "target_transform": target_transform}
        datasets.VisionDataset.__init__(this, str(root), **change)
        count, classes = CIFAR_IMAGES[not train], CIFAR[type(this).__name__]
        this.train, this.data = train, images(count, 32, 32, 3).numpy()
        this.targets = (torch.arange(count) % classes).tolist()
        this.classes = [str(number) for number in range(classes)]
        this.class_to_idx = {name: int(name) for name in this.classes}

    kinds: tuple[Any, ...] = datasets.MNIST, datasets.EMNIST
    for kind in kinds:
        kind.download = lambda _: None
        kind._check_exists = lambda _: True
        kind._check_legacy_exist = lambda _: False
        kind._load_data = load
    for name in CIFAR:
        getattr(datasets, name).__init__ = cifar
