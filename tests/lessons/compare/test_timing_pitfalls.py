"""Three ways to time, two of them wrong."""

import time

import pytest
import torch

from core.errors import CancelledError
from core.lessons.compare import timing_pitfalls
from core.lessons.compare.timing_pitfalls_result import WAYS, Reading, misleading
from core.measure.speedup import paired
from core.watch import Watch
from tests.drifting_clock import DriftingClock
from tests.queue_device import QueueDevice

CPU = torch.device("cpu")


class SlowStart(QueueDevice):
    """A device whose first call takes longer than all others, as every first call."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def launch(self):
        self.calls += 1
        self.queue.put(0.2 if self.calls == 1 else 0.01)


def readings(way):
    device = SlowStart()
    seconds = timing_pitfalls.time_it(way, device.launch, CPU, device.synchronize)
    device.synchronize()
    device.queue.put(-1)
    return seconds


def test_naive_times_the_queueing():
    assert sum(readings("naive")) < 0.01


def test_synchronize_shows_the_first_call_apart():
    first, *later = readings("synchronize")
    assert first > 0.19
    assert 0.009 < sorted(later)[len(later) // 2] < 0.05


def test_warm_up_leaves_the_first_call_out():
    seconds = readings("synchronize and warm-up")
    assert len(seconds) == timing_pitfalls.CALLS
    assert sorted(seconds)[len(seconds) // 2] < 0.05
    assert min(seconds) > 0.009


def test_a_known_sleep_is_read_within_5_percent():
    seconds = timing_pitfalls.time_it("synchronize", lambda: time.sleep(0.1), CPU)
    assert sorted(seconds)[len(seconds) // 2] == pytest.approx(0.1, rel=0.05)


def test_the_lab_has_all_ways_and_both_thread_counts(monkeypatch):
    monkeypatch.setitem(timing_pitfalls.SIZES, "cpu", 64)
    monkeypatch.setattr(timing_pitfalls, "THREAD_SIZES", (16, 64))
    reported = []
    found = timing_pitfalls.measure("cpu", Watch(reported.append))
    assert tuple(reported) == found.readings
    assert tuple(reading.way for reading in found.readings) == WAYS
    assert all(len(r.seconds) == timing_pitfalls.CALLS for r in found.readings)
    assert {each.size for each in found.threads} == {16, 64}
    assert 1 in {each.threads for each in found.threads}


def test_the_queueing_is_told_by_readings_in_turn(monkeypatch):
    monkeypatch.setattr(timing_pitfalls, "CALLS", 5)
    monkeypatch.setattr(timing_pitfalls, "WARM_UP", 1)
    device = SlowStart()
    found = timing_pitfalls.queueing(device.launch, CPU, device.synchronize)
    device.queue.put(-1)
    assert len(found) == timing_pitfalls.PAIRS
    assert min(found) > 2


@pytest.mark.parametrize("busy_from", [1, 30, 55, 80])
def test_a_neighbour_in_the_middle_does_not_touch_what_threads_bring(
    monkeypatch, busy_from
):
    clock = DriftingClock(monkeypatch, busy_from)

    class Matrix:
        def __matmul__(self, _other):
            clock.pass_by(3.0 if torch.get_num_threads() == 1 else 2.0)

    monkeypatch.setattr(timing_pitfalls, "THREAD_SIZES", (16,))
    monkeypatch.setattr(timing_pitfalls.torch, "rand", lambda *_: Matrix())
    one, two = timing_pitfalls.threads_trap(cores=2)
    found = paired(one.seconds, two.seconds)
    assert (one.threads, two.threads) == (1, 2)
    assert found.median == pytest.approx(1.5)
    assert sum(abs(ratio - 1.5) > 0.01 for ratio in found.ratios) <= 1


def test_it_can_be_cancelled():
    with pytest.raises(CancelledError):
        timing_pitfalls.measure("cpu", watch=Watch(cancelled=lambda: True))


@pytest.mark.gpu
def test_the_naive_clock_is_wrong_on_an_accelerator():
    found = timing_pitfalls.measure(torch.accelerator.current_accelerator().type)
    later = {r.way: sorted(r.seconds[1:])[5] for r in found.readings}
    assert later["naive"] < later["synchronize and warm-up"] / 2


def test_a_way_that_misleads_is_marked_and_the_right_one_never_is():
    naive, synchronized, right = WAYS
    found = (
        Reading(naive, (50.0, 0.1, 0.1)),
        Reading(synchronized, (3.1, 3.0, 3.0)),
        Reading(right, (3.0, 3.0, 90.0)),
    )
    assert misleading(found) == {naive: True, synchronized: False, right: False}
