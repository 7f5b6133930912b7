import inspect
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
import torch

from core.config import IMAGE_MODELS
from core.jobs import child_process
from core.jobs.job import resolve
from core.lessons.mistakes import runner
from core.lessons.mistakes.catalogue import BY_SLUG, MISTAKES, NO_GPU, MistakeRun
from core.lessons.mistakes.examples import (
    bounds,
    fixtures,
    loading,
    moving,
    silent,
    training,
    workers,
)
from tests.process import HOUR, ROOT, python

CPU = torch.device("cpu")
LOUD = [mistake.slug for mistake in MISTAKES if mistake.loud]
SILENT = [mistake.slug for mistake in MISTAKES if not mistake.loud]
MISMATCHES = LOUD[:8]
# How far apart the two figures are, at the least, and which one is the higher.
MISLED = {
    "softmax_before_loss": lambda broken, fixed: broken < fixed - 0.2,
    "no_zero_grad": lambda broken, fixed: broken < fixed - 0.2,
    "no_eval_mode": lambda broken, fixed: broken < fixed - 0.2,
    "timing_unsynchronized": lambda broken, fixed: min(broken, fixed) > 0,
    "item_every_step": lambda broken, fixed: broken == fixtures.STEPS and fixed == 1,
    "mean_of_batch_means": lambda broken, fixed: abs(broken - fixed) > 0.02,
    "list_never_trained": lambda broken, fixed: (broken, fixed) == (650, 109_386),
    "targets_broadcast": lambda broken, fixed: broken < 0.1 < 0.7 < fixed,
    "nan_in_half": lambda broken, fixed: broken == 0.1 and fixed > 0.6,
    "graph_kept": lambda broken, fixed: broken > 3 > 0.1 > fixed > 0,
    "memory_not_freed": lambda broken, fixed: broken == 25.6 and 0.4 <= fixed < 0.41,
    "not_reproducible": lambda broken, fixed: broken > 0 == fixed,
    "same_random_numbers": lambda broken, fixed: (broken, fixed) == (32, 64),
}

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def reports() -> dict[str, MistakeRun]:
    """Each mistake, run once as the page runs it, two at a time."""
    slugs = [mistake.slug for mistake in MISTAKES]
    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(2) as pool:
        patch.setattr(runner, "SECONDS", HOUR)
        return dict(zip(slugs, pool.map(runner.run, slugs), strict=True))


def test_the_catalogue_and_the_functions_are_the_same_mistakes():
    slugs = [mistake.slug for mistake in MISTAKES]
    assert len(slugs) == len(set(slugs)) >= 16
    halves = {
        mistake.address(half) for mistake in MISTAKES for half in ("broken", "fixed")
    }
    functions = {
        f"{module.__name__}:{name}"
        for module in (bounds, fixtures, loading, moving, silent, training, workers)
        for name, _ in inspect.getmembers(module, inspect.isfunction)
        if name.startswith(("broken_", "fixed_"))
    }
    assert functions == halves


def test_each_mistake_is_short_and_fits_half_a_screen():
    from core.ui.source import source  # a bare machine has no streamlit

    for mistake in MISTAKES:
        assert 20 < len(mistake.why) < 300
        for half in ("broken", "fixed"):
            lines = source(mistake.address(half)).splitlines()
            assert len(lines) <= 22
            assert max(len(line) - 4 for line in lines[1:]) <= 42


@pytest.mark.parametrize("slug", LOUD)
def test_a_loud_mistake_raises_in_its_own_lines(reports, slug):
    from core.ui.source import body

    if slug == "out_of_memory" and reports[slug].broken.device == "cpu":
        limited = sys.platform == "linux"
        assert (reports[slug].broken.failure is not None) == limited
        if not limited:
            pytest.skip("only Linux limits the memory of a process")
    failure = reports[slug].broken.failure
    assert failure is not None
    assert failure.message
    assert f"{failure.kind}: {failure.message}".splitlines()[0] in failure.traceback
    assert f"in broken_{slug}" in failure.traceback
    assert str(ROOT) not in failure.traceback
    lines = body(BY_SLUG[slug].address("broken")).splitlines()
    guilty = lines[failure.line - 1].strip()
    assert guilty in failure.traceback
    assert not guilty.startswith(("def ", "class "))
    assert not failure.poisoned or reports[slug].broken.device != "cpu"
    if slug in MISMATCHES:  # it works where there is only one device
        assert reports[slug].broken.device != "cpu"
        resolve(BY_SLUG[slug].address("broken"))(CPU)


@pytest.mark.parametrize("slug", LOUD)
def test_the_fix_of_a_loud_mistake_works(reports, slug):
    (fixed,) = reports[slug].fixed
    assert fixed.failure is None
    assert not fixed.died
    assert fixed.result != "None"


@pytest.mark.parametrize("slug", SILENT)
def test_a_silent_mistake_misleads_and_is_seen_step_by_step(reports, slug):
    broken, (fixed,) = reports[slug].broken, reports[slug].fixed
    assert broken.failure is fixed.failure is None
    assert MISLED[slug](broken.figure, fixed.figure)
    curve = BY_SLUG[slug].figure.curve
    assert len(broken.curve) == len(fixed.curve)
    assert bool(broken.curve) == bool(curve)
    assert broken.curve != fixed.curve or not curve
    if curve in ("loss", "waits"):
        assert len(broken.curve) == fixtures.STEPS


def test_a_clock_without_waiting_reads_nothing_of_the_work(monkeypatch):
    class Queue:
        """Its work is done, in a second each, once somebody waits for it."""

        now = 0.0

        def __init__(self, _):
            self.put = 0

        def put_work(self):
            self.put += 1

        def synchronize(self):
            Queue.now += self.put
            self.put = 0

    clock = SimpleNamespace(perf_counter=lambda: Queue.now)
    monkeypatch.setattr(silent, "DeviceQueue", Queue)
    monkeypatch.setattr(silent, "time", clock)
    assert silent.broken_timing_unsynchronized(CPU) == 0
    assert silent.fixed_timing_unsynchronized(CPU) == 1


def test_waits_cost_nothing_but_waiting(reports):
    report = reports["item_every_step"]
    both = float(report.broken.result), float(report.fixed[0].result)
    assert both[0] == pytest.approx(both[1], rel=1e-5)


def test_the_mean_of_batch_means_is_what_it_is_called(reports):
    report = reports["mean_of_batch_means"]
    total = fixtures.RAGGED_TEST
    assert report.fixed[0].figure * total == pytest.approx(
        round(report.fixed[0].figure * total), abs=1e-6
    )
    assert abs(report.broken.figure * total - round(report.broken.figure * total)) > 0.1


def test_pieces_give_the_gradient_of_the_whole_batch(monkeypatch):
    monkeypatch.setattr(bounds, "batch", lambda _: fixtures.images(600))
    whole, pieces = (
        half(CPU) for half in (bounds.broken_out_of_memory, bounds.fixed_out_of_memory)
    )
    assert torch.allclose(whole, pieces, rtol=1e-4)


@pytest.mark.parametrize("model", IMAGE_MODELS)
def test_the_checkpoint_is_one_of_a_gpu(model):
    script = f"""
import torch
from core import models
from core.lessons.checkpoints import round_trip
from core.lessons.mistakes.examples.loading import saved_on_cuda
model = models.build("{model}")
file = saved_on_cuda(model)
print(*{{tensor.device for tensor in round_trip.inspect(file.getvalue())}})
state = torch.load(file, map_location="cpu", weights_only=True)
there = model.state_dict()
print(*{{torch.equal(state[name], there[name]) for name in {{*state, *there}}}})
"""  # in a process of its own: every later torch.save in it would say so too
    assert python("-c", script).stdout.split() == ["cuda:0", "True"]


def test_a_mistake_that_kills_its_process_is_an_outcome(monkeypatch):
    call = child_process.call

    def kill_the_first(path, which, *arguments, **limits):
        if which == "broken":
            return call("os:_exit", 3)
        return call(path, which, *arguments, **limits)

    monkeypatch.setattr(child_process, "warm_up", lambda: None)
    monkeypatch.setattr(child_process, "call", kill_the_first)
    report = runner.run("numpy_requires_grad")
    assert "status 3" in report.broken.died
    assert report.fixed[0].result


def test_gpus_are_hidden_where_the_mistake_is_to_have_none():
    hidden = [mistake.slug for mistake in MISTAKES if mistake.broken_on == NO_GPU]
    assert hidden == ["cuda_hard_coded", "cuda_checkpoint"]
    before = os.environ.get("CUDA_VISIBLE_DEVICES")
    for slug in hidden:
        outcome = runner.half("broken", BY_SLUG[slug], "cpu")
        assert outcome.failure is not None
    assert os.environ.get("CUDA_VISIBLE_DEVICES") == before


@pytest.mark.gpu
@pytest.mark.parametrize("slug", MISMATCHES)
def test_on_an_accelerator_mismatches_are_its_own(reports, slug):
    device = runner.devices.other_than_cpu().type
    assert reports[slug].broken.device == device
    assert [outcome.device for outcome in reports[slug].fixed] == [device]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA")
def test_a_device_side_assert_is_survived(reports):
    report = reports["label_outside_classes"]
    assert report.broken.failure.poisoned
    assert report.fixed[0].failure is None
    assert runner.run("data_not_moved").fixed[0].failure is None


def test_the_line_that_raised_is_found_in_nested_code(reports):
    from core.ui.source import body

    line = reports["tensor_in_forward"].broken.failure.line
    lines = body(BY_SLUG["tensor_in_forward"].address("broken")).splitlines()
    assert "super().forward" in lines[line - 1]
