from dataclasses import replace

import pytest
import torch
from torch import Tensor

from core.lessons.compare import device_queue
from core.lessons.compare.device_queue_page import DeviceQueue
from core.lessons.compare.device_queue_result import CALLS, COMPUTES
from core.lessons.compare.step_profile_result import DEVICE
from tests.app import samples
from to_device.sim import ledger, queue

ALONE, FETCHED = samples.QUEUE.alone, samples.QUEUE.fetched


def test_a_clock_that_does_not_wait_shows_a_part():
    assert ALONE.done_by_then == 0
    assert ALONE.share == pytest.approx(0.75 / 9.5)
    assert FETCHED.done_by_then == CALLS


def test_the_device_computes_one_product_after_the_other():
    for timeline in (ALONE, FETCHED):
        spans = [span for span in timeline.spans if span.lane == DEVICE]
        assert [span.part for span in spans] == [COMPUTES] * CALLS
        ends = [0.0, *(span.end for span in spans)]
        assert all(span.start >= end for span, end in zip(spans, ends, strict=False))


@pytest.mark.sim
def test_the_host_waits_once_or_for_each_product(monkeypatch):
    monkeypatch.setattr(device_queue, "SIZE", 16)
    lab = device_queue.measure("sim")
    assert lab.environment.is_simulated
    for timeline in (lab.alone, lab.fetched):
        assert timeline.waited >= max(call.done for call in timeline.calls)
    assert all(call.returned >= call.done for call in lab.fetched.calls)
    with queue.working():
        matrix = torch.rand(4, 4, device="sim")
        for fetch, waits in ((None, 1), (Tensor.item, CALLS + 1)):
            with ledger.counting() as counts:
                device_queue.multiply(matrix, fetch)
            assert counts.waits.total() == waits


def test_a_machine_without_any_queue_says_so():
    machine = samples.machine("CPU")
    with pytest.raises(ValueError, match="no queue"):
        DeviceQueue().defaults(machine)
    assert DeviceQueue().defaults(replace(machine, simulates=True)) == ("sim",)
