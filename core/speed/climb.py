"""Climb the ladder: train on one rung after the other and measure each.

Every rung begins with the same weights, and its epochs are timed in turn with those of
the rung that it changes; at the end those of the best in turn with the textbook's.
"""

import gc
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

import torch
from torch import nn

from core import devices, loops, models
from core.data import batches, datasets
from core.errors import CancelledError, ExplainedError, explain, is_out_of_memory
from core.measure import peak_memory
from core.measure.environment import now
from core.speed import headline, ladder, roofline, rungs
from core.speed.headline import Climbed, Direct, DirectProgress
from core.speed.ladder import Climb, Progress, Result
from core.watch import UNWATCHED, Watch

SEED = 1  # of the weights; 0 is the CNN's worst of ten, see core.speed.ladder.SEEDS
REPORT_SECONDS = 0.2

NO_COMPILER = (
    "torch.compile writes C++ for the CPU and found no compiler to build it with. "
    "Install one and climb again: apt-get install g++ on Debian and Ubuntu, "
    "xcode-select --install on macOS, the Build Tools for Visual Studio on Windows."
)


def climb(
    wanted: Climb, done: Sequence[Result] = (), watch: Watch = UNWATCHED
) -> Climbed:
    """Measure every rung that `done` does not hold yet; reports each as it is known.

    A rung that fails says why, and the next one builds on what was kept before.
    """
    device = devices.resolve(wanted.device)
    datasets.load(wanted.task)  # if that fails, no rung is to blame
    found = roofline.measure(wanted.task, wanted.model, device)
    watch.report(found)
    results = list(done)
    base: PreparedRung | None = None
    try:
        for rung in ladder.RUNGS[len(results) :]:
            last = ladder.base(results)
            obstacle = rung.obstacle(devices.backend(device), wanted.model)
            ready = None
            if obstacle:
                result = Result(rung.name, last, applies=False, message=obstacle)
            else:
                watch.report(Progress(rung.name, 0, 0))
                try:
                    if last and base is None:  # the climb was resumed
                        base = get_ready(last, wanted, device, results)
                    ready = get_ready(rung.name, wanted, device, results)
                    result = measure(ready, base, wanted, results, watch)
                except CancelledError:
                    raise
                except Exception as error:
                    result = Result(rung.name, last, message=why(error))
            if result.kept:
                base = ready
            results.append(result)
            watch.report(result)
            gc.collect()  # a loader's worker processes end with it
        direct = compare_directly(base, wanted, device, results, watch)
    finally:
        torch.compiler.reset()  # what was compiled holds on to its model
    environment = devices.environment(device)
    return Climbed(wanted, found, tuple(results), direct, environment, now())


def why(error: Exception) -> str:
    """A sentence on what failed, and what to do about it."""
    known = isinstance(error, ExplainedError) or is_out_of_memory(error)
    text = f"{error} {getattr(error, 'inner_exception', '')}"
    if not known and ("C++ compiler" in text or "cl is not found" in text):
        return NO_COMPILER
    return explain(error)


@dataclass
class PreparedRung:
    """A rung that is set up and has made its first steps."""

    rung: str
    model: nn.Module
    epoch: rungs.Epoch
    device: torch.device
    start_seconds: float
    peak_bytes: int | None


def get_ready(
    rung: str, wanted: Climb, device: torch.device, results: Sequence[Result]
) -> PreparedRung:
    """Set a rung up and make some steps, so that no epoch pays for what is set up."""
    torch.manual_seed(SEED)
    # As the textbook has it: all pixels of a channel lie together in memory.
    model = models.build(wanted.model).to(memory_format=torch.contiguous_format)
    model = model.to(device)
    before = devices.allocated(device) or 0

    start = time.perf_counter()
    with cold_compiler(rung):
        set_up = getattr(rungs, rung)
        split = datasets.load(wanted.task).train.first(wanted.images)
        epoch = set_up(split, model, device, ladder.kept(results))
        steps = epoch()
        next(steps)
    devices.synchronize(device)
    start_seconds = time.perf_counter() - start

    there = (devices.allocated(device) or 0) - before
    few = islice(steps, ladder.FIRST_STEPS - 1)
    peak = peak_memory.peak_bytes(lambda: list(few), device)
    steps.close()
    peak = None if peak is None else there + peak
    return PreparedRung(rung, model, epoch, device, start_seconds, peak)


def measure(
    ready: PreparedRung,
    base: PreparedRung | None,
    wanted: Climb,
    results: Sequence[Result],
    watch: Watch = UNWATCHED,
) -> Result:
    """Time every epoch, in turn with one of the rung before; then evaluate.

    In turn, A B A B, since whatever else the machine does must hit both.
    """
    seconds, base_seconds = [], []
    for number in range(1, wanted.epochs + 1):
        progress = partial(Progress, ready.rung, number)
        taken, steps = time_epoch(ready, progress, watch)
        seconds.append(taken)
        if base is not None:
            base_seconds.append(time_epoch(base, progress, watch)[0])

    dataset = datasets.load(wanted.task)
    test = batches.in_order(dataset.test, ready.device)
    outputs, targets = loops.predict(ready.model, test, ready.device)
    ready.model.train()
    kept = ladder.with_change(ladder.kept(results), ready.rung)
    measured = Result(
        ready.rung,
        ladder.base(results),
        tuple(seconds),
        tuple(base_seconds),
        min(steps * kept.batch_size, wanted.images, len(dataset.train)),
        steps,
        ready.start_seconds,
        ready.peak_bytes,
        int((outputs.argmax(dim=1) == targets).sum()),
        len(targets),
    )
    return replace(measured, kept=ladder.is_kept(measured, results))


def compare_directly(
    ready: PreparedRung | None,
    wanted: Climb,
    device: torch.device,
    results: Sequence[Result],
    watch: Watch = UNWATCHED,
) -> Direct | None:
    """The best rung against the textbook loop; None where no rung was measured.

    `ready` is the last rung that was kept, mostly the best one.
    """
    best = headline.best(results)
    if best is None:
        return None
    watch.report(DirectProgress(1, headline.pairs(wanted), 0))
    try:
        if ready is None or ready.rung != best.rung:
            ready = get_ready(best.rung, wanted, device, results[: results.index(best)])
        textbook = None
        if best.rung != headline.TEXTBOOK in ladder.measured(results):
            textbook = get_ready(headline.TEXTBOOK, wanted, device, ())
        return take_turns(textbook, ready, wanted, watch)
    except CancelledError:
        raise
    except Exception as error:
        return Direct(best.rung, message=why(error))


def take_turns(
    textbook: PreparedRung | None,
    best: PreparedRung,
    wanted: Climb,
    watch: Watch,
) -> Direct:
    """An epoch of the textbook loop, one of the best rung, then the limit."""
    seconds, textbook_seconds, limits = [], [], []
    pairs = headline.pairs(wanted)
    for pair in range(1, pairs + 1):
        progress = partial(DirectProgress, pair, pairs)
        if textbook is not None:
            taken, _ = time_epoch(textbook, progress, watch)
            textbook_seconds.append(taken)
        taken, _ = time_epoch(best, progress, watch)
        seconds.append(taken)
        limit = roofline.measure(wanted.task, wanted.model, best.device, 1)
        limits.append(limit)
    epochs = tuple(seconds), tuple(textbook_seconds)
    return Direct(best.rung, *epochs, tuple(limits))


def time_epoch(
    ready: PreparedRung, progress: Callable[[int], object], watch: Watch
) -> tuple[float, int]:
    """Seconds and steps of an epoch, from an idle device to an idle device.

    Now and then the progress at a step is reported.
    """
    devices.synchronize(ready.device)
    start = told = time.perf_counter()
    step, loss = 0, torch.tensor(math.nan)
    for step, loss in enumerate(ready.epoch(), 1):  # type: ignore # noqa: B007
        watch.check()
        if time.perf_counter() - told > REPORT_SECONDS:
            watch.report(progress(step))
            told = time.perf_counter()
    devices.synchronize(ready.device)
    seconds = time.perf_counter() - start
    if not math.isfinite(loss):
        raise ExplainedError(f"The loss became {float(loss)}: nothing is learned.")
    return seconds, step


@contextmanager
def cold_compiler(rung: str) -> Iterator[None]:
    """Within it torch.compile finds nothing that was compiled before."""
    if rung not in ("compiled", "whole_step", "graphed"):
        yield
        return
    from torch._inductor import config  # takes a second

    with config.patch(force_disable_caches=True):
        yield
