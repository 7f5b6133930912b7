import pytest
import torch

from core.devices import other_than_cpu
from core.measure.peak_memory import peak_bytes

CPU = torch.device("cpu")


def pattern() -> None:
    """4,000 and 20,000 bytes; then 8,000 in place of the 4,000; then nothing."""
    first = torch.empty(1000)
    second = torch.empty(5000)
    del first
    third = torch.empty(2000)
    del second, third


def test_peak_of_a_known_pattern() -> None:
    assert peak_bytes(pattern, CPU) == pytest.approx(28_000, abs=64)


def test_nothing_is_claimed_where_nothing_tells() -> None:
    assert peak_bytes(pattern, torch.device("meta")) is None


@pytest.mark.gpu
def test_the_accelerator_counts_its_own() -> None:
    here = other_than_cpu()
    assert here is not None
    if here.type not in ("cuda", "sim"):
        pytest.skip("neither XPU nor MPS counts")

    def work() -> None:
        torch.empty(1 << 20, dtype=torch.uint8, device=here)

    assert peak_bytes(work, here) == 1 << 20
