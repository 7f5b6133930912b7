import pytest
import torch

from core import devices
from core.lessons.speed import vectorize
from core.lessons.speed.vectorize_result import NUMPY, PYTHON, TORCH
from core.watch import Watch
from tests.app.drifting_clock import DriftingClock

CPU = torch.device("cpu")
pytestmark = pytest.mark.usefixtures("one_thread")


def test_every_way_is_measured_at_every_size():
    reported = []
    lab = vectorize.measure("cpu", Watch(reported.append), repeats={1: 3, 20: 2})
    assert tuple(reported) == lab.found
    assert [(timing.way, timing.points) for timing in lab.found] == [
        (way, points) for points in (1, 20) for way in (PYTHON, NUMPY, TORCH)
    ]
    assert [len(timing.seconds) for timing in lab.found] == [3, 3, 3, 2, 2, 2]
    assert set(lab.environments) == {PYTHON, NUMPY, TORCH}
    assert lab.numpy


@pytest.mark.parametrize("busy_from", [1, 7, 18, 29, 99])
def test_a_neighbour_in_the_middle_makes_no_wrong_ratio_sure(monkeypatch, busy_from):
    clock = DriftingClock(monkeypatch, busy_from)
    seconds = {PYTHON: 12.0, NUMPY: 3.0, TORCH: 1.0}
    works = {way: (clock.work(duration), CPU) for way, duration in seconds.items()}
    monkeypatch.setattr(vectorize, "ways", lambda *_: works)
    lab = vectorize.measure("cpu", repeats={1: 5})
    for way, ratio in ((TORCH, 12), (NUMPY, 4)):
        over = lab.speedup(1, way, PYTHON)
        low, high = over.interval
        assert low / 1.001 <= ratio <= high * 1.001
        assert over.ratio == pytest.approx(ratio) or not over.is_sure


@pytest.mark.parametrize("count", [1, 50])
def test_all_ways_find_the_distances_that_torch_has_a_function_for(count):
    points, means = torch.rand(count, 2), torch.rand(3, 2)
    right = torch.cdist(points, means, compute_mode="donot_use_mm_for_euclid_dist")
    for work, _ in vectorize.ways(points, means, CPU).values():
        torch.testing.assert_close(torch.as_tensor(work()), right)


def test_a_wrong_way_is_found_out(monkeypatch):
    monkeypatch.setattr(vectorize, "with_torch", lambda p, m: p[:, :1] - m[:, 0] + 9)
    lab = vectorize.measure("cpu", repeats={2: 1})
    differences = {timing.way: timing.difference for timing in lab.found}
    assert differences[TORCH] > 1
    assert differences[NUMPY] < 1e-5


@pytest.mark.gpu
def test_the_accelerator_has_a_bar_of_its_own():
    if devices.accelerator() is None:
        pytest.skip("nothing is timed on the simulated accelerator")
    lab = vectorize.measure("auto", repeats={100: 2})
    assert len(lab.found) == 4
    assert lab.found[-1].device != "cpu"
    assert all(timing.difference < 1e-5 for timing in lab.found)
