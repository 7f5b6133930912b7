"""Random numbers on the device follow its seeds."""

import torch


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


def test_a_state_can_be_kept() -> None:
    state = torch.sim.get_rng_state()
    first = torch.randperm(9, device="sim")
    torch.sim.set_rng_state(state)
    assert torch.equal(first, torch.randperm(9, device="sim"))
    with torch.random.fork_rng(devices=[0], device_type="sim"):
        torch.rand(3, device="sim")
