import os

import pytest

from tests.process import python

OFFER = (
    "from to_device.sim import simulation; "
    "print(simulation.offer(), simulation.works())"
)
PATCHES = {
    "real": (
        "import torch; torch.accelerator.is_available = lambda: True; "
        "torch.accelerator.current_accelerator = lambda: torch.device('cuda'); ",
        "not available alongside a real accelerator, and this process has cuda. False",
    ),
    "old": (
        "import torch; torch.__version__ = '2.9.1'; ",
        "needs torch 2.10 or later, but this is torch 2.9.1. False",
    ),
    "changed": (
        "from to_device.sim import memory; memory.Block.__del__ = lambda self: None; ",
        "memory is not released False",
    ),
    "new, and fits": ("import torch; torch.__version__ = '9.0.0'; ", "True"),
}


def last_line(script: str, **environment: str) -> str:
    done = python("-c", script, env=os.environ | environment)
    return done.stdout.strip().splitlines()[-1]


@pytest.mark.slow
@pytest.mark.parametrize("name", PATCHES)
def test_it_is_offered_where_it_fits(name: str) -> None:
    patch, words = PATCHES[name]
    assert last_line(patch + OFFER).endswith(words)


def test_it_can_be_switched_off() -> None:
    assert "turned off" in last_line(OFFER, SIMULATED_ACCELERATOR="0")


@pytest.mark.slow
def test_the_cpu_computes_as_without_it() -> None:
    script = (
        "import torch; from core import models; torch.set_num_threads(1); "
        "torch.manual_seed(0); model = models.build('ann'); "
        "loss = model(torch.rand(8, 1, 28, 28)).square().sum(); loss.backward(); "
        "optimizer = torch.optim.AdamW(model.parameters()); optimizer.step(); "
        "print(sum(p.double().sum().item() for p in model.parameters()))"
    )
    assert last_line(script) == last_line(f"{OFFER}; {script}")
