"""core.compare.step_profile: a training step taken apart."""

import gzip
import json
from collections import Counter
from types import SimpleNamespace

import pytest
import torch
from torch.autograd import DeviceType

from core import devices
from core.compare import step_profile
from core.compare.results import DEVICE, HOST, PARTS, Span
from core.config import RunConfig
from core.data import datasets
from core.errors import CancelledError
from core.training import Training
from core.watch import Watch

CONFIG = RunConfig(task="sprites", batch_size=64)
FEEDS = ("dataloader", "memory", "device")

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def found():
    """The breakdown for every feed on the CPU."""
    pairs = tuple((feed, "cpu") for feed in FEEDS)
    return step_profile.measure(CONFIG, pairs)


def test_the_parts_add_up_to_the_step(found):
    """Within 10%, for every feed."""
    for each in found:
        assert each.covered == pytest.approx(1, abs=0.1)


def test_every_part_is_timed_in_every_step(found):
    """As many figures for each part as there are counted steps."""
    for each in found:
        assert tuple(each.parts) == PARTS
        for seconds in (*each.parts.values(), each.step, each.unprofiled):
            assert len(seconds) == step_profile.STEPS
            assert min(seconds) > 0


def test_loading_is_what_the_textbook_loader_does(found):
    """Opening every image costs more than picking tensors, and most of the step."""
    loader, memory, _ = found
    assert loader.largest == "load"
    assert loader.share > 0.5
    assert loader.typical("load") > 5 * memory.typical("load")


def test_the_trace_has_a_few_whole_steps(found):
    """It is gzipped JSON with the ranges by their names, and small: it is kept."""
    for each in found:
        events = json.loads(gzip.decompress(each.trace))["traceEvents"]
        ranges = Counter(event["name"] for event in events)
        for name in (*PARTS, "step"):
            assert ranges[name] == step_profile.TRACED
        assert len(each.trace) < 200_000


def test_a_step_in_ranges_is_a_step_of_the_loop():
    """It leaves the same weights as core.loops.train_epoch does."""
    weights = []
    for ranged in (False, True):
        config = RunConfig(task="sprites", device="cpu", batch_size=64)
        trained = Training(config, datasets.load("sprites").train.first(128))
        if ranged:
            batch = iter(trained.feed)
            for _ in range(2):
                step_profile.step(trained, batch, devices.synchronize)
        else:
            list(trained.train_epoch())
        parameters = trained.model.parameters()
        weights.append(torch.cat([p.detach().flatten() for p in parameters]))
    assert torch.equal(*weights)


def test_a_lane_has_every_part_once_and_in_order(found):
    """On the CPU there is one lane: it does what it asks for."""
    for each in found:
        assert tuple(span.part for span in each.spans) == PARTS
        assert {span.lane for span in each.spans} == {HOST}
        ends = [(span.start, span.end) for span in each.spans]
        assert ends == sorted(ends)
        assert each.stopwatch(HOST) == each.stopwatch(DEVICE) > 0


def test_the_host_is_done_before_the_device():
    """What the device does for a step is told with it, though it comes later."""

    def event(name: str, start: float, end: float, device: bool = False):
        kind = DeviceType.CUDA if device else DeviceType.CPU
        times = SimpleNamespace(start=start, end=end)
        return SimpleNamespace(name=name, device_type=kind, time_range=times)

    events = [
        each
        for number in range(step_profile.WARM_UP + 1)
        for at in [number * 1000.0]
        for each in (
            event("step", at, at + 10),
            event("forward", at, at + 10),
            event("step", at + 5, at + 800, device=True),
            event("forward", at + 5, at + 800, device=True),
            event("aten::mm", at, at + 3),
        )
    ]
    found = step_profile.timeline(events)
    assert [each.lane for each in found] == [HOST, DEVICE]
    assert found[1] == Span(DEVICE, "forward", pytest.approx(5e-6), pytest.approx(8e-4))


def test_it_can_be_cancelled():
    """Cancelling ends it between two feeds."""
    with pytest.raises(CancelledError):
        step_profile.measure(
            CONFIG, (("memory", "cpu"),), watch=Watch(cancelled=lambda: True)
        )
