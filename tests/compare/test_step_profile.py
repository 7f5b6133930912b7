"""core.compare.step_profile: a training step taken apart."""

import gzip
import json
from collections import Counter

import pytest
import torch

from core.compare import step_profile
from core.compare.results import PARTS
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
    """Within 10 %, for every feed."""
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
                step_profile.step(trained, batch)
        else:
            list(trained.train_epoch())
        parameters = trained.model.parameters()
        weights.append(torch.cat([p.detach().flatten() for p in parameters]))
    assert torch.equal(*weights)


def test_it_can_be_cancelled():
    """Cancelling ends it between two feeds."""
    with pytest.raises(CancelledError):
        step_profile.measure(
            CONFIG, (("memory", "cpu"),), watch=Watch(cancelled=lambda: True)
        )
