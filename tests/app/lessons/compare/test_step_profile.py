import gzip
import json
from collections import Counter
from dataclasses import replace
from statistics import median
from types import SimpleNamespace

import pytest
import torch
from torch.autograd import DeviceType

from core import devices
from core.config import RunConfig
from core.data import datasets
from core.lessons.compare import step_profile
from core.lessons.compare.step_profile_result import DEVICE, HOST, PARTS, Span
from core.training import Training
from tests.app.samples import PROFILE

CONFIG = RunConfig(task="sprites", batch_size=64)
FEEDS = ("dataloader", "memory", "device")

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def profiles():
    """The breakdown for every feed on the CPU."""
    pairs = tuple((feed, "cpu") for feed in FEEDS)
    return step_profile.measure(CONFIG, pairs)


def test_the_parts_add_up_to_the_step(profiles):
    for profile in profiles:
        sums = map(sum, zip(*profile.parts.values(), strict=True))
        shares = [a / b for a, b in zip(sums, profile.step, strict=True)]
        # Another program may take the core between two parts of a step.
        assert 0.5 < median(shares) < 1.01


def test_every_part_is_timed_in_every_step(profiles):
    for profile in profiles:
        assert tuple(profile.parts) == PARTS
        for seconds in (*profile.parts.values(), profile.step, profile.unprofiled):
            assert len(seconds) == step_profile.STEPS
            assert min(seconds) > 0


def test_the_trace_has_a_few_whole_steps(profiles):
    for profile, feed in zip(profiles, FEEDS, strict=True):
        events = json.loads(gzip.decompress(profile.trace))["traceEvents"]
        ranges = Counter(event["name"] for event in events)
        for name in (*PARTS, "step"):
            assert ranges[name] == step_profile.TRACED
        assert any("DataLoader" in name for name in ranges) == (feed == "dataloader")
        assert len(profile.trace) < 200_000


def test_a_script_of_ones_own_is_profiled_to_a_table_and_a_trace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x, calls = torch.rand(8, 8), []
    table = step_profile.profile_it(lambda: calls.append(x @ x), warm_up=1, steps=4)
    assert len(calls) == 5
    assert "aten::mm" in table
    trace = json.loads((tmp_path / "trace.json").read_text())
    names = Counter(event.get("name") for event in trace["traceEvents"])
    assert names["aten::mm"] == 4


def test_a_step_in_ranges_is_a_step_of_the_loop():
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


def test_a_lane_has_every_part_once_and_in_order(profiles):
    for profile in profiles:
        assert tuple(span.part for span in profile.spans) == PARTS
        assert {span.lane for span in profile.spans} == {HOST}
        ends = [(span.start, span.end) for span in profile.spans]
        assert ends == sorted(ends)
        assert profile.stopwatch(HOST) == profile.stopwatch(DEVICE) > 0


def test_the_host_is_done_before_the_device():

    def event(name: str, start: float, end: float, device: bool = False):
        kind = DeviceType.CUDA if device else DeviceType.CPU
        times = SimpleNamespace(start=start, end=end)
        return SimpleNamespace(name=name, device_type=kind, time_range=times)

    events = [
        recorded
        for number in range(step_profile.WARM_UP + 1)
        for at in [number * 1000.0]
        for recorded in (
            event("step", at, at + 10),
            event("forward", at, at + 10),
            event("step", at + 5, at + 800, device=True),
            event("forward", at + 5, at + 800, device=True),
            event("aten::mm", at, at + 3),
        )
    ]
    spans = step_profile.timeline(events)
    assert [span.lane for span in spans] == [HOST, DEVICE]
    assert spans[1] == Span(DEVICE, "forward", pytest.approx(5e-6), pytest.approx(8e-4))


def test_the_parts_of_a_typical_step_add_up():
    fast, slow = (*(1.0,) * 7, 9.0), (9.0, *(1.0,) * 7)
    parts = dict.fromkeys(PARTS, (0.0,) * 8) | {"load": fast, "copy": slow}
    step = tuple(a + b for a, b in zip(fast, slow, strict=True))
    profile = replace(PROFILE, parts=parts, step=step)
    assert sum(map(profile.typical, PARTS)) == profile.typical("step") == 2.0


@pytest.mark.parametrize(
    ("timeline", "largest", "share"),
    [
        # A lane alone is one step among many: the parts of them all say more.
        ((Span(HOST, "load", 0.0, 9.0),), "copy", 0.4),
        (
            (Span(HOST, "load", 0.0, 1.0), Span(DEVICE, "backward", 1.0, 4.0)),
            "backward",
            0.75,
        ),
    ],
)
def test_the_part_that_is_named_is_the_longest_that_is_drawn(timeline, largest, share):
    parts = {part: (1.0 + (part == "copy"),) * 8 for part in PARTS}
    parts["optimizer"] = (0.0,) * 8
    profile = replace(PROFILE, parts=parts, step=(5.0,) * 8, timeline=timeline)
    assert (profile.largest, profile.share) == (largest, pytest.approx(share))
    bars = {span.part: span.end - span.start for span in profile.spans}
    assert (
        bars[profile.largest]
        == max(bars.values())
        == pytest.approx(profile.share * profile.seconds)
    )
