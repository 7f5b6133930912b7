import pytest
import torch

from to_device.sim import selfcheck


def test_it_finds_nothing_here() -> None:
    selfcheck.check()


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (lambda: None, "an error says 'nothing'"),
        (lambda: torch.zeros(2) + torch.zeros(3), "an error says 'The size of tensor"),
    ],
)
def test_a_mistake_that_goes_through_is_found(action, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        selfcheck.refuses("same device", action)
