import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from to_device.sim import memory
from to_device.sim.memory import GRANULE


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


def test_the_peak_lasts_until_it_is_reset() -> None:
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


def test_a_result_too_large_for_the_host_is_too_large_for_the_device() -> None:
    row = torch.ones(1, 10**8, device="sim")
    with pytest.raises(torch.OutOfMemoryError, match=r"allocate 372529.03 GiB"):
        row.t()[: 10**6] @ row


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.empty(2, pin_memory=True),
        lambda: torch.tensor([2], pin_memory=True),
        lambda: torch.zeros(2, pin_memory=True, requires_grad=True),
        lambda: torch.empty_like(
            torch.ones(2, device="sim"), device="cpu", pin_memory=1
        ),
    ],
)
def test_new_memory_of_the_host_may_be_pinned(make) -> None:
    pinned = make()
    assert pinned.is_pinned()
    assert pinned.is_leaf
    assert not torch.empty(2).is_pinned()
    assert not torch.tensor([2], device="sim", pin_memory=True).is_pinned()


def zeros(size: int) -> torch.Tensor:
    return torch.zeros(size)


def test_compilers_still_know_what_makes_tensors() -> None:
    """The functions that can pin memory are still PyTorch's own to the compilers."""
    for compiled in (torch.jit.script(zeros), torch.compile(zeros, backend="eager")):
        assert torch.equal(compiled(3), torch.zeros(3))
    with torch.device("meta"):
        assert torch.zeros(3).is_meta
