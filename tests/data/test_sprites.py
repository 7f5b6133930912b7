"""The sprites: what draw promises, and that a network can learn them."""

import pytest
import torch
from torch import Tensor, nn

from core.data import sprites

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def train() -> tuple[Tensor, Tensor]:
    """3,000 images to learn from."""
    return sprites.draw(3000, seed=0)


@pytest.fixture(scope="module")
def test() -> tuple[Tensor, Tensor]:
    """1,000 images with another seed."""
    return sprites.draw(1000, seed=1)


@pytest.mark.parametrize("n", [0, 1, 7, 250])
def test_shapes_and_types(n: int) -> None:
    """Any number of images has the layout of Fashion-MNIST."""
    images, labels = sprites.draw(n, seed=3)
    assert images.shape == (n, 1, 28, 28)
    assert images.dtype == torch.uint8
    assert labels.shape == (n,)
    assert labels.dtype == torch.int64


def test_uses_the_range_of_gray(train: tuple[Tensor, Tensor]) -> None:
    """Pixels go from black to white, with many grays in between."""
    images, _ = train
    assert images.min() == 0
    assert images.max() == 255
    assert len(images.unique()) > 200


def test_classes_are_those_of_fashion_mnist() -> None:
    """The ten kinds of clothes are in the order of Fashion-MNIST's labels."""
    assert list(sprites.WARDROBE) == [
        "T-shirt/top",
        "Trouser",
        "Pullover",
        "Dress",
        "Coat",
        "Sandal",
        "Shirt",
        "Sneaker",
        "Bag",
        "Ankle boot",
    ]


@pytest.mark.parametrize("n", [1003, 3000])
def test_classes_are_balanced(n: int) -> None:
    """No class has more than one image more than another."""
    counts = sprites.draw(n, seed=4)[1].bincount(minlength=10)
    assert len(counts) == 10
    assert counts.max() - counts.min() <= 1


def test_order_is_shuffled(train: tuple[Tensor, Tensor]) -> None:
    """Neighbours share their label as rarely as chance has it, about 1 in 10."""
    _, labels = train
    same = (labels[1:] == labels[:-1]).float().mean()
    assert 0.07 < same < 0.13


def test_same_seed_same_bytes(test: tuple[Tensor, Tensor]) -> None:
    """A seed repeats its images and labels exactly."""
    images, labels = sprites.draw(1000, seed=1)
    assert torch.equal(images, test[0])
    assert torch.equal(labels, test[1])


def test_other_seed_other_images() -> None:
    """Two seeds give other images and another order of labels."""
    (images, labels), (others, other_labels) = (sprites.draw(100, s) for s in (1, 2))
    assert not torch.equal(labels, other_labels)
    assert not torch.equal(images, others)


def test_threads_do_not_matter() -> None:
    """One thread and many threads draw the same bytes."""
    one = sprites.draw(2000, seed=5)
    torch.set_num_threads(4)
    many = sprites.draw(2000, seed=5)
    torch.set_num_threads(1)
    assert torch.equal(one[0], many[0])
    assert torch.equal(one[1], many[1])


def test_global_generator_is_left_alone() -> None:
    """Drawing neither reads nor moves PyTorch's global random state."""
    torch.manual_seed(1)
    before = torch.get_rng_state()
    images, _ = sprites.draw(50, seed=6)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    assert torch.equal(sprites.draw(50, seed=6)[0], images)


def test_bright_on_black(train: tuple[Tensor, Tensor]) -> None:
    """Every image has clothes on it and a black background around them."""
    ink = (train[0] > 0).flatten(1).float().mean(1)
    assert ink.min() > 0.05
    assert ink.max() < 0.9
    assert (train[0].flatten(1).amax(1) > 40).all()
    # A corner may hold a sleeve or a heel now and then, no more.
    corners = train[0][:, 0, ::27, ::27]
    assert (corners == 0).float().mean() > 0.98


def test_test_images_are_new(
    train: tuple[Tensor, Tensor], test: tuple[Tensor, Tensor]
) -> None:
    """No image appears twice, neither in one draw nor in two draws."""
    together = torch.cat([train[0], test[0]]).flatten(1)
    assert len({bytes(image.tolist()) for image in together}) == 4000


def test_each_class_has_its_look(train: tuple[Tensor, Tensor]) -> None:
    """The average images of any two classes differ."""
    images, labels = train
    means = torch.stack([images[labels == k].float().mean(0) for k in range(10)])
    apart = torch.cdist(means.flatten(1), means.flatten(1), p=1) / 28**2
    assert (apart + 255 * torch.eye(10)).min() > 2


def test_a_network_learns_them(
    train: tuple[Tensor, Tensor], test: tuple[Tensor, Tensor]
) -> None:
    """A small network beats 80%, while one answer for all is right 1 time in 10."""
    (images, labels), (unseen, truth) = train, test
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = nn.Sequential(
            nn.Flatten(), nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10)
        )
        adam = torch.optim.Adam(net.parameters(), lr=2e-3)
        for _ in range(5):
            for batch in torch.randperm(len(images)).split(64):
                loss = nn.functional.cross_entropy(
                    net(images[batch] / 255), labels[batch]
                )
                adam.zero_grad()
                loss.backward()
                adam.step()
    accuracy = (net(unseen / 255).argmax(1) == truth).float().mean()
    assert accuracy > 0.8
    constant = truth.bincount().max() / len(truth)
    assert constant == pytest.approx(0.1, abs=0.001)
