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
    images, labels = sprites.draw(n, seed=3)
    assert images.shape == (n, 1, 28, 28)
    assert images.dtype == torch.uint8
    assert labels.shape == (n,)
    assert labels.dtype == torch.int64


def test_classes_are_those_of_fashion_mnist() -> None:
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
    counts = sprites.draw(n, seed=4)[1].bincount(minlength=10)
    assert len(counts) == 10
    assert counts.max() - counts.min() <= 1


def test_same_seed_same_bytes(test: tuple[Tensor, Tensor]) -> None:
    images, labels = sprites.draw(1000, seed=1)
    assert torch.equal(images, test[0])
    assert torch.equal(labels, test[1])


def test_threads_do_not_matter() -> None:
    one = sprites.draw(2000, seed=5)
    torch.set_num_threads(4)
    many = sprites.draw(2000, seed=5)
    torch.set_num_threads(1)
    assert torch.equal(one[0], many[0])
    assert torch.equal(one[1], many[1])


def test_global_generator_is_left_alone() -> None:
    torch.manual_seed(1)
    before = torch.get_rng_state()
    images, _ = sprites.draw(50, seed=6)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    assert torch.equal(sprites.draw(50, seed=6)[0], images)


def test_a_network_learns_them(
    train: tuple[Tensor, Tensor], test: tuple[Tensor, Tensor]
) -> None:
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
