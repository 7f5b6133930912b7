import pytest
import torch

from core.data import sprites

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("n", [1003, 3000])
def test_classes_are_balanced(n: int) -> None:
    counts = sprites.draw(n, seed=4)[1].bincount(minlength=10)
    assert len(counts) == 10
    assert counts.max() - counts.min() <= 1


def test_same_seed_same_bytes() -> None:
    first, second = (sprites.draw(1000, seed=1) for _ in range(2))
    assert all(map(torch.equal, first, second))


def test_threads_do_not_matter() -> None:
    alone = sprites.draw(2000, seed=5)
    torch.set_num_threads(4)
    together = sprites.draw(2000, seed=5)
    torch.set_num_threads(1)
    assert torch.equal(alone[0], together[0])
    assert torch.equal(alone[1], together[1])


def test_global_generator_is_left_alone() -> None:
    torch.manual_seed(1)
    before = torch.get_rng_state()
    images, _ = sprites.draw(50, seed=6)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    assert torch.equal(sprites.draw(50, seed=6)[0], images)
