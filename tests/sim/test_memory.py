"""Memory is counted to the byte, and given back at once."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from core.sim import memory
from core.sim.memory import GRANULE


def rounded(size: int) -> int:
    return -(-size // GRANULE) * GRANULE


@given(st.lists(st.tuples(st.integers(0, 5000), st.booleans()), max_size=20))
def test_what_is_allocated_is_what_is_alive(sizes: list[tuple[int, bool]]) -> None:
    before, alive = memory.allocated, []
    for size, keeps in sizes:
        tensor = torch.empty(size, dtype=torch.uint8, device="sim")
        if keeps:
            alive.append(tensor)
        del tensor
        assert memory.allocated - before == sum(rounded(t.numel()) for t in alive)
    views = [tensor[1:] for tensor in alive if len(tensor)]
    assert memory.allocated - before == sum(rounded(t.numel()) for t in alive)
    del alive, views
    tensor = None  # noqa: F841
    assert memory.allocated == before


def test_the_peak_is_kept_until_it_is_reset() -> None:
    memory.reset_peak()
    low = memory.peak
    torch.empty(10_000, device="sim")
    assert memory.peak == low + rounded(40_000)
    memory.reset_peak()
    assert memory.peak == memory.allocated


def test_a_full_device_refuses_and_goes_on() -> None:
    with memory.limited_to(memory.allocated + 10 * GRANULE):
        tensor = torch.zeros(GRANULE, device="sim")  # four granules
        before = memory.allocated
        for make in (
            lambda: torch.zeros(8 * GRANULE, device="sim"),
            lambda: torch.cat([tensor] * 2),
        ):
            with pytest.raises(torch.OutOfMemoryError, match="SIM out of memory") as e:
                make()
            assert "GPU 0 has a total capacity of" in str(e.value)
            del e
            assert memory.allocated == before
        assert (tensor + 1).sum() == GRANULE
    with pytest.raises(torch.OutOfMemoryError, match="Tried to allocate"):
        torch.empty(10**15, device="sim")
