from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest
import torch

from core.data import datasets
from core.errors import CancelledError
from core.lessons.speed import climb, climb_result
from core.lessons.speed.climb_result import (
    RUNGS,
    Climb,
    ClimbProgress,
    Result,
    Roofline,
    verdict,
)
from core.watch import Watch
from tests.process import descendants
from to_device.sim import simulation

SETTINGS = Climb("sprites", "ann", "cpu", 2, 60_000)
IMAGES = 640

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Few images, no compiler, and a limit that is not measured each time."""
    whole = datasets.load("sprites")
    short = replace(whole, train=whole.train.first(IMAGES), test=whole.test.first(200))
    monkeypatch.setattr(datasets, "load", lambda _: short)
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))
    limit = Roofline(1.0, 1.0, 1.0, {"float32": (1.0,)}, (1.0,), (1.0,))
    monkeypatch.setattr(climb.roofline, "measure", lambda *_: limit)
    monkeypatch.setattr(climb, "REPORT_SECONDS", 0.0)
    monkeypatch.setattr(simulation, "why_not", "Its counts have a test of their own.")


@pytest.fixture
def few(monkeypatch):
    """A ladder without worker processes and without compiling."""
    slow = ("two_workers", "four_workers", "compiled", "whole_step")
    some = tuple(rung for rung in RUNGS if rung.name not in slow)
    monkeypatch.setattr(climb_result, "RUNGS", some)
    monkeypatch.setattr(climb.peak_memory, "peak_bytes", lambda work, _: work() and 1)
    return some


@pytest.mark.slow
def test_it_comes_to_the_end():
    events = []
    before = descendants()
    done = climb.climb(SETTINGS, watch=Watch(events.append))
    assert isinstance(events[0], Roofline)
    assert tuple(e for e in events if isinstance(e, Result)) == done.results
    assert [result.rung for result in done.results] == [rung.name for rung in RUNGS]
    for result, rung in zip(done.results, RUNGS, strict=True):
        assert result.measured == (not rung.obstacle("CPU", "ann"))
        assert bool(result.message) != result.measured
    first, *others = [result for result in done.results if result.measured]
    assert first.base_seconds == ()
    for result in others:
        assert len(result.seconds) == len(result.base_seconds) == SETTINGS.epochs
        assert result.total == 200
        assert result.peak_bytes > 0
    epochs = {(e.rung, e.epoch) for e in events if isinstance(e, ClimbProgress)}
    assert {("fused", 0), ("fused", 1), ("fused", 2)} <= epochs
    # 640 images are 10 batches of 64, 3 of 256, or 2 where the last must be whole.
    steps = {result.rung: (result.steps, result.samples) for result in done.results}
    assert steps["textbook"] == (10, 640)
    assert steps["larger_batch"] == (3, 640)
    assert steps["compiled"] in ((2, 512), (10, 640))
    direct, gain = done.direct, done.speedup
    assert direct.rung == climb_result.best(done.results).rung
    assert gain is None or gain.n == len(direct.limits) == SETTINGS.pairs == 3
    assert descendants() <= before, "left behind"


@pytest.mark.sim
@pytest.mark.usefixtures("few")
def test_what_a_rung_asks_of_the_host_is_counted(monkeypatch):
    monkeypatch.setattr(simulation, "why_not", "")
    events = []
    counts = {c.rung: c for c in climb.count(SETTINGS, Watch(events.append))}
    assert tuple(events) == tuple(counts.values())
    steps = IMAGES // 64
    waits = {rung: count.waits for rung, count in counts.items()}
    assert waits["textbook"] == 3 * steps  # inputs, targets, the loss
    assert waits["pinned"] == waits["on_the_device"] == steps  # the loss
    assert waits["no_waiting"] == waits["fused"] == 0
    assert counts["textbook"].bytes == IMAGES * (4 * 28 * 28 + 8)
    assert counts["on_the_device"].copies == 0
    assert "graphed" not in counts


def fails(*_):
    raise RuntimeError("the kernel is missing\nand a long story")


def loses_its_numbers(*_):
    return lambda: (torch.tensor(float("nan")) for _ in range(10))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("broken", "sentence"),
    [
        (fails, "RuntimeError"),
        (loses_its_numbers, "nan"),
    ],
)
def test_a_rung_that_fails_says_why_and_the_climb_goes_on(
    few, monkeypatch, broken, sentence
):
    monkeypatch.setattr(climb.rungs, "larger_batch", broken)
    results = {result.rung: result for result in climb.climb(SETTINGS).results}
    assert len(results) == len(few)
    assert sentence in results["larger_batch"].message
    assert "long story" not in results["larger_batch"].message
    assert not results["larger_batch"].measured
    assert results["half_precision"].base == "fused"
    assert results["half_precision"].measured


def test_a_missing_compiler_is_a_sentence(monkeypatch):
    from torch._inductor import config

    monkeypatch.undo()  # the real torch.compile
    monkeypatch.setattr(config.cpp, "cxx", (None, "no-such-compiler"))
    with pytest.raises(RuntimeError, match="no-such-compiler") as caught:
        climb.prepare("compiled", SETTINGS, torch.device("cpu"), ())
    torch.compiler.reset()
    assert climb.why(caught.value) == climb.words("no_compiler")


SECONDS = {  # an epoch takes this, when the machine does nothing else
    "textbook": 3.0,
    "decoded_once": 1.0,
    "no_waiting": 1.0,
    "fused": 0.75,
    "larger_batch": 0.5,
    "half_precision": 0.25,
}


@pytest.fixture
def clock(monkeypatch, few):  # noqa: ARG001  # the ladder without its slow rungs
    """Epochs that take SECONDS by a clock of our own.

    While the rung `busy_at` is measured, a neighbour slows each epoch by its factor.
    """
    fake = SimpleNamespace(now=0.0, busy_at="", slowed={}, measured="")

    def prepare(rung, _settings, device, _results):
        fake.measured = rung

        def epoch():
            for _ in range(10):
                busy = fake.measured == fake.busy_at
                factor = fake.slowed.get(rung, 1.0) if busy else 1.0
                fake.now += SECONDS[rung] * factor / 10
                yield torch.tensor(0.5)

        model = climb.models.build("ann")
        return climb.PreparedRung(rung, model, epoch, device, 0.0, None)

    timer = SimpleNamespace(perf_counter=lambda: fake.now)
    torch.manual_seed(0)
    monkeypatch.setattr(climb, "time", timer)
    monkeypatch.setattr(climb, "gc", SimpleNamespace(collect=int))  # takes a while
    monkeypatch.setattr(climb, "prepare", prepare)
    monkeypatch.setattr(climb_result, "NOISE", 1.0)  # nothing is learned
    return fake


@pytest.mark.parametrize("factor", [0.4, 1.0, 9.0])
def test_a_neighbour_in_the_middle_does_not_touch_the_headline(clock, factor):
    # The rung before is slowed beside it, as a loader is and a product is not.
    clock.busy_at, clock.slowed = "larger_batch", {"fused": factor}
    done = climb.climb(SETTINGS)
    gain = done.speedup
    best = climb_result.measured(done.results)[done.direct.rung]
    true = SECONDS["textbook"] / SECONDS[best.rung]
    assert (gain.ratio, *gain.interval) == pytest.approx([true] * 3)
    if factor == 1:
        product = climb_result.multiplied(best, done.results)
        assert product == pytest.approx(true)


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize(("during", "last"), [("fused", "no_waiting"), ("", "graphed")])
def test_a_climb_is_resumed_where_it_was_cancelled(during, last):
    """The rung "" stands for the direct comparison at the end."""
    events, again = [], []

    def cancelled():
        progress = (e for e in events if isinstance(e, ClimbProgress))
        return any(e.rung == during and e.step for e in progress)

    with pytest.raises(CancelledError):
        climb.climb(SETTINGS, (), Watch(events.append, cancelled))
    done = tuple(e for e in events if isinstance(e, Result))
    assert done[-1].rung == last
    climbed = climb.climb(SETTINGS, done, Watch(again.append))
    assert climbed.results[: len(done)] == done
    assert climbed.speedup.ratio == pytest.approx(12)
    rungs = {event.rung for event in again if isinstance(event, ClimbProgress)}
    assert rungs.isdisjoint(result.rung for result in done)
    for result in climbed.results[len(done) :]:
        assert len(result.base_seconds) == SETTINGS.epochs * result.measured


@pytest.mark.usefixtures("clock")
def test_without_the_textbook_there_is_no_ratio(monkeypatch):

    def prepare(rung, *more, prepare=climb.prepare):
        return fails() if rung == "textbook" else prepare(rung, *more)

    monkeypatch.setattr(climb, "prepare", prepare)
    done = climb.climb(SETTINGS)
    assert done.direct.rung == "half_precision"
    assert (done.direct.textbook_seconds, done.speedup) == ((), None)
    assert len(done.direct.limits) == SETTINGS.pairs


@pytest.mark.usefixtures("clock")
def test_a_direct_comparison_that_fails_says_why(monkeypatch):
    whole = climb.climb(SETTINGS)
    monkeypatch.setattr(climb, "time_epoch", fails)
    done = climb.climb(SETTINGS, whole.results)
    assert done.results == whole.results
    assert done.speedup is None
    assert done.best is None
    assert verdict(done).endswith(done.direct.message)
