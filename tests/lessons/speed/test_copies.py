"""Pieces arrive whole, and every way fetches the same numbers."""

import pytest
import torch

from core import devices
from core.errors import CancelledError
from core.lessons.speed import copies
from core.watch import Watch

CPU = torch.device("cpu")
pytestmark = pytest.mark.usefixtures("one_thread")


def test_both_halves_are_measured():
    lab = copies.measure("cpu", size=100, counts=(1, 7), steps=3, repeats=2)
    assert [each.pieces for each in lab.copied] == [1, 7]
    assert {each.bytes for each in lab.copied} == {100}
    assert {each.way for each in lab.fetched} == set(copies.WAYS)
    assert all(len(each.seconds) == 2 for each in (*lab.copied, *lab.fetched))


@pytest.mark.parametrize("count", [1, 7, 100])
def test_the_pieces_are_the_whole(count):
    source = torch.randint(1, 256, (100,), dtype=torch.uint8)
    target = torch.zeros_like(source)
    sources, targets = source.tensor_split(count), target.tensor_split(count)
    copies.copy_pieces(sources, targets)
    assert torch.equal(source, target)
    assert len(sources) == count
    assert sum(map(len, sources)) == 100


def test_every_way_fetches_the_same_numbers():
    device = devices.resolve("auto")
    for fetch in copies.WAYS.values():
        numbers = iter(torch.arange(5.0, device=device))
        assert fetch(lambda numbers=numbers: next(numbers), 5) == [0, 1, 2, 3, 4]


def test_a_step_ends_in_one_number():
    assert copies.make_step(CPU)().shape == ()


def test_it_can_be_cancelled():
    for answers in ([True], [False] * 3 + [True]):
        asked = iter(answers)
        with pytest.raises(CancelledError):
            copies.measure(
                "cpu",
                Watch(cancelled=asked.__next__),
                size=9,
                counts=(1,),
                steps=1,
                repeats=1,
            )
        assert next(asked, None) is None
