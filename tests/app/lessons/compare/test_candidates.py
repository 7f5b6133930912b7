from core.lessons.compare import candidates
from tests.app.samples import machine


def test_without_an_accelerator_one_thread_races_all():
    options = candidates.candidates(machine("CPU", cores=6))
    assert [option.threads for option in options] == [6, 5, 2, 1]
    first, second = candidates.default_pair(options)
    assert (first.threads, second.threads) == (1, 6)


def test_with_an_accelerator_it_races_the_cpu():
    options = candidates.candidates(machine("CUDA", "CPU", cores=8))
    first, second = candidates.default_pair(options)
    assert (first.device, first.threads, second.device) == ("cpu", 7, "cuda")
    assert first in options


def test_one_core_races_itself_under_two_names():
    options = candidates.candidates(machine("CPU", cores=1))
    first, second = candidates.tell_apart(*candidates.default_pair(options))
    assert (first.threads, second.threads) == (1, 1)
    assert first.name != second.name
