from collections.abc import Callable

import pytest
import torch
from torch import Generator, nn
from torch.utils.data import DataLoader, random_split


def test_a_seed_is_for_both() -> None:
    drawn = []
    for seed in (torch.manual_seed, torch.manual_seed, torch.sim.manual_seed):
        seed(5)
        drawn.append(torch.rand(3, device="sim").cpu())
    assert torch.equal(drawn[0], drawn[1])
    assert torch.equal(drawn[0], drawn[2])


def test_a_generator_of_the_device() -> None:
    generator = torch.Generator("sim").manual_seed(3)
    assert generator.device.type == "sim"
    assert torch.Generator().device.type == "cpu"
    first = torch.rand(2, device="sim", generator=generator)
    again = torch.rand(2, device="sim", generator=generator.manual_seed(3))
    assert torch.equal(first, again)


def test_a_generators_state_can_be_saved_and_restored() -> None:
    state = torch.sim.get_rng_state()
    first = torch.randperm(9, device="sim")
    torch.sim.set_rng_state(state)
    assert torch.equal(first, torch.randperm(9, device="sim"))
    with torch.random.fork_rng(devices=[0], device_type="sim"):
        torch.rand(3, device="sim")


DRAWS: dict[str, Callable[[Generator], object]] = {
    "rand": lambda dice: torch.rand(2, generator=dice),
    "randperm": lambda dice: torch.randperm(3, generator=dice),
    "in place": lambda dice: torch.empty(2).normal_(generator=dice),
    "initial weights": lambda dice: nn.init.kaiming_normal_(
        torch.empty(2, 2), generator=dice
    ),
    "a split": lambda dice: random_split(range(4), [2, 2], dice),
    "a shuffle": lambda dice: list(DataLoader(range(4), shuffle=True, generator=dice)),
    "two draws in one": lambda dice: torch.multinomial(
        torch.ones(3), 2, generator=dice
    ),
}


@pytest.mark.parametrize("name", DRAWS)
def test_the_host_draws_with_its_own_generator(name: str) -> None:
    DRAWS[name](Generator())
    words = "Expected a 'cpu' device type for generator but found 'sim'"
    with pytest.raises(RuntimeError, match=words):
        DRAWS[name](Generator("sim"))


def test_the_device_draws_with_its_own_generator() -> None:
    chances, dice = torch.ones(3, device="sim"), Generator("sim")
    assert torch.multinomial(chances, 2, generator=dice).device.type == "sim"
    assert chances.bernoulli(generator=dice).device.type == "sim"
