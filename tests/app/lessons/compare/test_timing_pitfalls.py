from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from core.lessons.compare import timing_pitfalls
from core.lessons.compare.timing_pitfalls_page import TimingPitfalls
from core.lessons.compare.timing_pitfalls_result import WAYS, Reading, misleading
from core.measure.speedup import BUSY, paired
from core.watch import Watch
from tests.app.drifting_clock import DriftingClock
from tests.app.samples import TIMING

CPU = torch.device("cpu")


class SlowStart:
    """A device with a queue, by a clock of its own; its first call is the longest."""

    def __init__(self, monkeypatch):
        self.now = self.idle_from = 0.0
        self.call_seconds = 200.0
        clock = SimpleNamespace(perf_counter=lambda: self.now)
        monkeypatch.setattr(timing_pitfalls, "time", clock)

    def launch(self):
        self.now += 1
        self.idle_from = max(self.now, self.idle_from) + self.call_seconds
        self.call_seconds = 10.0

    def synchronize(self, _device):
        self.now = max(self.now, self.idle_from)


@pytest.mark.parametrize(
    ("way", "first", "later"),
    [("naive", 1, 1), ("synchronize", 201, 11), ("synchronize and warm-up", 11, 11)],
)
def test_only_the_last_way_reads_what_a_call_takes(monkeypatch, way, first, later):
    device = SlowStart(monkeypatch)
    seconds = timing_pitfalls.time_it(way, device.launch, CPU, device.synchronize)
    assert seconds == [first] + [later] * (timing_pitfalls.CALLS - 1)


def test_the_lab_has_all_ways_and_both_thread_counts(monkeypatch):
    monkeypatch.setattr(timing_pitfalls, "CPU_SIZE", 64)
    monkeypatch.setattr(timing_pitfalls, "THREAD_SIZES", (16, 64))
    reported = []
    lab = timing_pitfalls.measure("cpu", Watch(reported.append))
    assert tuple(reported) == lab.readings
    assert tuple(reading.way for reading in lab.readings) == WAYS
    assert all(len(r.seconds) == timing_pitfalls.CALLS for r in lab.readings)
    assert {reading.size for reading in lab.threads} == {16, 64}
    assert 1 in {reading.threads for reading in lab.threads}


def test_queueing_is_measured_by_alternating_readings(monkeypatch):
    device = SlowStart(monkeypatch)
    ratios = timing_pitfalls.queueing(device.launch, CPU, device.synchronize)
    assert ratios == [11] * timing_pitfalls.PAIRS


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
    single, double = timing_pitfalls.threads_trap(cores=2)
    speedup = paired(single.seconds, double.seconds)
    assert (single.threads, double.threads) == (1, 2)
    low, high = speedup.interval
    assert low <= 1.5 + 1e-9
    assert high >= 1.5 - 1e-9


@pytest.mark.parametrize(
    ("backend", "first", "marked"),
    [
        ("CUDA", 3.1, [True, False, False]),
        ("CPU", 3.1, [False] * 3),  # nothing stands out, so nothing is marked
        ("CPU", 50.0, [True, True, False]),
    ],
)
def test_a_way_that_misleads_is_marked_and_the_right_one_never_is(
    backend, first, marked
):
    seconds = (50.0, 0.1, 0.1), (first, 3.0, 3.0), (3.0, 3.0, 90.0)
    readings = tuple(map(Reading, WAYS, seconds))
    where = replace(TIMING.environment, backend=backend)
    lab = replace(TIMING, readings=readings, environment=where)
    assert list(misleading(lab).values()) == marked


STEADY = 3.0, 3.1, 3.2, 3.3


@pytest.mark.parametrize(
    ("backend", "later", "is_steady"),
    [
        ("CPU", (STEADY, STEADY, STEADY), True),
        ("CPU", (STEADY, STEADY, (5.0, 5.1, 5.2, 5.3)), False),
        ("CPU", (STEADY, STEADY, (3.0, 3.0, 9.0, 9.0)), False),
        ("CUDA", ((0.1, 0.1, 0.1, 0.1), STEADY, STEADY), True),  # naive: only queued
    ],
)
def test_calls_that_vary_tell_of_a_busy_machine(backend, later, is_steady):
    readings = (
        Reading(way, (9.0, *calls)) for way, calls in zip(WAYS, later, strict=True)
    )
    where = replace(TIMING.environment, backend=backend)
    lab = replace(TIMING, readings=tuple(readings), environment=where)
    assert lab.is_steady == is_steady
    assert (BUSY in TimingPitfalls().finding(lab).sentence) != is_steady
