"""core.compare.candidates: who can be compared on a machine."""

from core.compare import candidates
from tests.samples import machine


def test_without_an_accelerator_one_thread_races_all():
    """The default pair on a CPU is one thread against every usable core."""
    found = candidates.candidates(machine("CPU", cores=6))
    assert [each.threads for each in found] == [6, 5, 2, 1]
    first, second = candidates.default_pair(found)
    assert (first.threads, second.threads) == (1, 6)


def test_with_an_accelerator_it_races_the_cpu():
    """The CPU gets the threads that the app trains with, not one."""
    found = candidates.candidates(machine("CUDA", "CPU", cores=8))
    first, second = candidates.default_pair(found)
    assert (first.device, first.threads, second.device) == ("cpu", 7, "cuda")
    assert first in found


def test_of_several_machines_the_one_with_an_accelerator_has_both():
    """However they are sorted, and under names that say where."""
    found = [
        each.on(host)
        for host, kinds in (("a", ["CPU"]), ("b", ["CUDA", "CPU"]))
        for each in candidates.candidates(machine(*kinds, cores=4))
    ]
    pair = candidates.default_pair(found)
    assert [(each.device, each.host) for each in pair] == [("cpu", "b"), ("cuda", "b")]
    assert [each.name[-5:] for each in pair] == [" on b"] * 2
    assert [each.host for each in candidates.default_pair(found[:3])] == ["a", "a"]


def test_one_core_races_itself_under_two_names():
    """A machine with a single candidate still has a pair, which can be told apart."""
    found = candidates.candidates(machine("CPU", cores=1))
    first, second = candidates.tell_apart(*candidates.default_pair(found))
    assert (first.threads, second.threads) == (1, 1)
    assert first.name != second.name
