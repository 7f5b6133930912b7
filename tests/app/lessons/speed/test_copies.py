import pytest
import torch

from core import devices
from core.lessons.speed import copies

pytestmark = pytest.mark.usefixtures("one_thread")


def test_both_halves_are_measured():
    lab = copies.measure("cpu", size=100, counts=(1, 7), steps=3, repeats=2)
    assert [timing.pieces for timing in lab.copied] == [1, 7]
    assert {timing.bytes for timing in lab.copied} == {100}
    assert {timing.way for timing in lab.fetched} == set(copies.WAYS)
    assert all(len(timing.seconds) == 2 for timing in (*lab.copied, *lab.fetched))


@pytest.mark.parametrize("count", [1, 7, 100])
def test_the_pieces_are_the_whole(count):
    source = torch.randint(1, 256, (100,), dtype=torch.uint8)
    target = torch.zeros_like(source)
    copies.copy_pieces(source.tensor_split(count), target.tensor_split(count))
    assert torch.equal(source, target)


def test_every_way_fetches_the_same_numbers():
    device = devices.resolve("auto")
    for fetch in copies.WAYS.values():
        numbers = iter(torch.arange(5.0, device=device))
        assert fetch(lambda numbers=numbers: next(numbers), 5) == [0, 1, 2, 3, 4]


@pytest.mark.sim
def test_the_host_goes_on_only_with_pinned_memory_and_non_blocking():
    *moves, item, cpu, once = copies.measure("cpu", size=9, steps=3, repeats=1).waited
    assert [move.waits for move in moves] == [100, 100, 100, 0]
    assert moves[-1].way == "pinned, non_blocking=True"
    assert [fetch.waits for fetch in (item, cpu, once)] == [3, 3, 1]
