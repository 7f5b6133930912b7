import sys
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from core.config import FEEDS
from core.data import feeds
from core.data.datasets import Split
from core.data.feeds import EpochOrder
from core.devices import other_than_cpu
from core.models import as_floats
from to_device.errors import ExplainedError

CPU = torch.device("cpu")
SIZE, BATCH = 50, 16  # three whole batches and one of two images

each_feed = pytest.mark.parametrize("feed", FEEDS)
with_or_without_flips = pytest.mark.parametrize("augment", [False, True])

Epochs = list[list[tuple[Tensor, Tensor]]]


@pytest.fixture(scope="module")
def split() -> Split:
    """Noise, each image labeled with its own number."""
    dice = torch.Generator().manual_seed(0)
    images = torch.randint(256, (SIZE, 1, 28, 28), generator=dice).byte()
    return Split(images, torch.arange(SIZE))


def epochs(feed: str, split: Split, **options: Any) -> Epochs:
    """The batches of two epochs, as floats."""
    loader = feeds.make(feed, split, BATCH, **{"device": CPU, "seed": 1, **options})
    return [
        [(as_floats(images), labels) for images, labels in loader] for _ in range(2)
    ]


def assert_equal(ours: Epochs, theirs: Epochs) -> None:
    """The same batches, bit by bit."""
    for our_epoch, their_epoch in zip(ours, theirs, strict=True):
        assert len(our_epoch) == len(their_epoch)
        for our_tensors, their_tensors in zip(our_epoch, their_epoch, strict=True):
            for our, their in zip(our_tensors, their_tensors, strict=True):
                assert our.dtype == their.dtype
                assert torch.equal(our, their)


def labels_of(epoch: list[tuple[Tensor, Tensor]]) -> list[int]:
    return torch.cat([labels for _, labels in epoch]).tolist()


@with_or_without_flips
@pytest.mark.parametrize("feed", ["device", "dataloader"])
def test_feeds_are_equal(split: Split, feed: str, augment: bool) -> None:
    assert_equal(
        epochs(feed, split, augment=augment), epochs("memory", split, augment=augment)
    )


@pytest.mark.filterwarnings("ignore:'pin_memory' argument is set as true")
@pytest.mark.parametrize("device", [CPU, other_than_cpu() or torch.device("meta")])
def test_pinned_batches_come_on_the_device(split: Split, device: torch.device) -> None:
    options = {"augment": device.type != "meta", "pin_memory": True}
    pinned = epochs("dataloader", split, device=device, **options)
    if device.type == "meta":
        assert {x.device for epoch in pinned for pair in epoch for x in pair} == {
            device
        }
        return
    for epoch in pinned:
        epoch[:] = [(images.to(CPU), labels.to(CPU)) for images, labels in epoch]
    assert_equal(pinned, epochs("memory", split, augment=True))


@pytest.mark.filterwarnings("ignore:'pin_memory' argument is set as true")
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"pin_memory": True}, {True}),
        ({"pin_memory": True, "non_blocking": False}, {False}),
        ({}, set()),  # the loop's own copy waits: nothing is pinned
    ],
)
def test_the_host_goes_on_only_where_it_is_asked_to(
    split: Split, options: dict[str, bool], expected: set[bool]
) -> None:
    choices = set()

    class Copies(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            if function is Tensor.to and "non_blocking" in (kwargs or {}):
                choices.add(kwargs["non_blocking"])
            return function(*args, **(kwargs or {}))

    with Copies():
        epochs("dataloader", split, **options)
    assert choices == expected


@pytest.mark.filterwarnings("ignore:This DataLoader will create 2 worker processes")
def test_loader_processes_change_nothing(split: Split) -> None:
    options = {"augment": True, "seed": 3}
    assert_equal(
        epochs("dataloader", split, num_workers=2, **options),
        epochs("dataloader", split, num_workers=0, **options),
    )


@each_feed
@with_or_without_flips
def test_each_image_once_an_epoch(split: Split, feed: str, augment: bool) -> None:
    first, second = map(labels_of, epochs(feed, split, augment=augment))
    assert sorted(first) == sorted(second) == list(range(SIZE))
    assert first != second
    assert first != sorted(first)


@each_feed
def test_last_batch_is_smaller(split: Split, feed: str) -> None:
    loader = feeds.make(feed, split, BATCH, CPU, seed=1)
    assert [len(labels) for _, labels in loader] == [16, 16, 16, 2]
    assert len(loader) == 4


@each_feed
def test_without_a_seed_in_file_order(split: Split, feed: str) -> None:
    for epoch in epochs(feed, split, seed=None, augment=True):
        assert labels_of(epoch) == list(range(SIZE))
        images = torch.cat([images for images, _ in epoch])
        assert torch.equal(images, as_floats(split.images))


@each_feed
@pytest.mark.parametrize("seed", [None, 1])
def test_global_generator_is_left_alone(
    split: Split, feed: str, seed: int | None
) -> None:
    torch.manual_seed(1)
    before = torch.get_rng_state()
    drawn = epochs(feed, split, seed=seed, augment=True)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    assert_equal(epochs(feed, split, seed=seed, augment=True), drawn)


def test_images_are_not_changed(split: Split) -> None:
    before = split.images.clone()
    for feed in FEEDS:
        epochs(feed, split, augment=True)
    assert torch.equal(split.images, before)


def test_flip_mirrors_the_marked(split: Split) -> None:
    images = split.images[:4]
    flipped = feeds.flip(images, torch.tensor([True, False, False, True]))
    for number, marked in enumerate([True, False, False, True]):
        rows = images[number, 0].tolist()
        expected = [row[::-1] for row in rows] if marked else rows
        assert flipped[number, 0].tolist() == expected


def test_half_are_flipped_and_drawn_anew() -> None:
    order = EpochOrder(10_000, seed=0, augment=True)
    (_, first), (_, second) = order.draw(), order.draw()
    assert first is not None
    assert second is not None
    assert 0.48 < first.float().mean() < 0.52
    assert not torch.equal(first, second)


@pytest.mark.parametrize("augment", [True, False])
def test_same_order_with_and_without_flips_at_first(augment: bool) -> None:
    order, flips = EpochOrder(100, seed=5, augment=augment).draw()
    plain, _ = EpochOrder(100, seed=5, augment=False).draw()
    assert torch.equal(order, plain)
    assert (flips is not None) == augment


class Mismatch:
    """Finds torchvision, which then fails as it does under another torch."""

    def find_spec(self, name: str, *_: object) -> None:
        if name.partition(".")[0] == "torchvision":
            raise RuntimeError("operator torchvision::nms does not exist")


@pytest.fixture
def mismatch(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A torchvision that does not fit the torch that is installed."""
    for name in list(sys.modules):
        if name.partition(".")[0] == "torchvision":
            monkeypatch.delitem(sys.modules, name)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "meta_path", [Mismatch(), *sys.meta_path])
        yield


@pytest.mark.usefixtures("mismatch")
def test_torchvision_that_does_not_fit_is_explained(split: Split) -> None:
    with pytest.raises(ExplainedError) as caught:
        feeds.make("dataloader", split, BATCH, CPU)
    message = str(caught.value)
    assert "torchvision::nms" in message
    assert "pip install --upgrade torch torchvision" in message
    assert "memory" in message


@pytest.mark.usefixtures("mismatch")
@pytest.mark.parametrize("feed", ["memory", "device"])
def test_other_feeds_need_no_torchvision(split: Split, feed: str) -> None:
    assert sorted(labels_of(epochs(feed, split)[0])) == list(range(SIZE))


@pytest.mark.gpu
def test_device_feed_lives_on_the_device(split: Split) -> None:
    here = other_than_cpu()
    assert here is not None
    ours = epochs("device", split, device=here, augment=True)
    assert {t.device.type for epoch in ours for batch in epoch for t in batch} == {
        here.type
    }
    moved = [[(images.cpu(), labels.cpu()) for images, labels in e] for e in ours]
    theirs = epochs("memory", split, device=here, augment=True)
    # Divided on the device: as_floats may round there in its own way.
    for our_epoch, their_epoch in zip(moved, theirs, strict=True):
        for (our, label), (their, same) in zip(our_epoch, their_epoch, strict=True):
            assert torch.equal(label, same)
            assert torch.allclose(our, their, atol=1e-7)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="CUDA pins, others may not")
def test_pinned_batches_are_page_locked(split: Split) -> None:
    pinned = feeds.make("dataloader", split, BATCH, CPU, seed=1, pin_memory=True)
    assert all(images.is_pinned() for images, _ in pinned)
