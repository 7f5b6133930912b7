"""Climb the ladder: measure one rung after the other.

A rung is a training loop that makes one change to an earlier rung's loop, its base. All
rungs train the model from the same initial weights. A rung's epochs alternate with
epochs of its base. At the end, epochs of the best rung alternate with epochs
of the textbook loop, the first rung.
"""

import gc
import math
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice

import torch
from torch import nn

from core import devices, loops, models
from core.data import datasets, feeds
from core.errors import CancelledError, explain
from core.lessons.speed import climb_result, roofline, rungs
from core.lessons.speed.climb_result import (
    FIRST_STEPS,
    TEXTBOOK,
    Climb,
    Climbed,
    ClimbProgress,
    Counts,
    Direct,
    Kept,
    Result,
)
from core.measure import peak_memory
from core.measure.environment import now
from core.watch import UNWATCHED, Watch
from to_device.errors import ExplainedError
from to_device.names import SIMULATED
from to_device.sim import ledger, simulation
from to_device.words import Words

SEED = 1  # sets the initial weights; with 0, the CNN is unusual (docs/experiments.md)
REPORT_SECONDS = 0.2

words = Words(__file__)


def climb(
    settings: Climb, done: Sequence[Result] = (), watch: Watch = UNWATCHED
) -> Climbed:
    """Measure every rung that `done` lacks, and report each Result.

    If a rung fails, its Result says why, and the climb goes on with the next rung.
    """
    device = devices.resolve_timed(settings.device)
    # Load the data before any rung, so that a failure here doesn't count as a rung's.
    datasets.load(settings.task)
    limit = roofline.measure(settings.task, settings.model, device)
    watch.report(limit)
    counts = tuple(count(settings, watch)) if simulation.works() else ()
    results = list(done)
    base: PreparedRung | None = None
    try:
        for rung in climb_result.RUNGS[len(results) :]:
            base_name, ready = climb_result.base(results), None
            obstacle = rung.obstacle(devices.backend(device), settings.model)
            result = Result(rung.name, base_name, message=obstacle)
            if not obstacle:
                watch.report(ClimbProgress(rung.name))
                try:
                    if base_name and not base:  # a resumed climb has no base yet
                        base = prepare(base_name, settings, device, results)
                    ready = prepare(rung.name, settings, device, results)
                    result = measure(ready, base, settings, results, watch)
                except CancelledError:
                    raise
                except Exception as error:
                    result = replace(result, message=why(error))
            if result.kept:
                base = ready
            results.append(result)
            watch.report(result)
            gc.collect()  # collect unused DataLoaders, so that their workers end
        direct = compare_directly(base, settings, device, results, watch)
    finally:
        torch.compiler.reset()  # compiled code would keep its model in memory
    environment = devices.environment(device)
    return Climbed(settings, limit, tuple(results), direct, environment, now(), counts)


def count(settings: Climb, watch: Watch = UNWATCHED) -> Iterator[Counts]:
    """Count each rung's waits, copies and operations on the simulated accelerator.

    Reports and yields the Counts of every rung that does not fail. Every rung
    starts from the default settings (`Kept()`), without earlier changes.
    """
    device = torch.device(SIMULATED)
    split = datasets.load(settings.task).train.first(climb_result.COUNTED_IMAGES)
    for rung in climb_result.RUNGS:
        watch.check()
        if rung.obstacle(devices.backend(device), settings.model):
            continue
        with suppress(RuntimeError, OSError):
            model = models.build(settings.model).to(device)
            epoch = getattr(rungs, rung.name)(split, model, device, Kept())
            with ledger.counting() as tally:
                deque(epoch(), maxlen=0)
            counts = Counts(
                rung.name,
                tally.waits.total(),
                ledger.total(tally.copies, ledger.TO_DEVICE),
                ledger.total(tally.copied, ledger.TO_DEVICE),
                tally.operations.total(),
            )
            watch.report(counts)
            yield counts


def why(error: Exception) -> str:
    """What failed and what to do about it, in a sentence."""
    text = f"{error} {getattr(error, 'inner_exception', '')}"
    if "C++ compiler" in text or "cl is not found" in text:
        return words("no_compiler")
    return explain(error)


@dataclass
class PreparedRung:
    """A rung that has been set up and has run its first steps."""

    name: str
    model: nn.Module
    epoch: rungs.Epoch
    device: torch.device
    start_seconds: float
    peak_bytes: int | None


def prepare(
    name: str, settings: Climb, device: torch.device, results: Sequence[Result]
) -> PreparedRung:
    """Set up a rung and run its first steps, so that no timed epoch includes them."""
    torch.manual_seed(SEED)
    # Start with PyTorch's default format: a channel's pixels lie together in memory.
    model = models.build(settings.model).to(memory_format=torch.contiguous_format)
    model = model.to(device)
    before = devices.allocated(device) or 0

    start = time.perf_counter()
    # The compiler's caches are off, so that compiling takes its full time.
    with torch.compiler.config.patch(force_disable_caches=True):  # type: ignore
        set_up = getattr(rungs, name)
        split = datasets.load(settings.task).train.first(settings.images)
        epoch = set_up(split, model, device, climb_result.kept_changes(results))
        steps = epoch()
        next(steps)
    devices.synchronize(device)
    start_seconds = time.perf_counter() - start

    setup_bytes = (devices.allocated(device) or 0) - before
    further_steps = islice(steps, FIRST_STEPS - 1)
    peak = peak_memory.peak_bytes(lambda: list(further_steps), device)
    steps.close()
    peak = None if peak is None else setup_bytes + peak
    return PreparedRung(name, model, epoch, device, start_seconds, peak)


def measure(
    rung: PreparedRung,
    base: PreparedRung | None,
    settings: Climb,
    results: Sequence[Result],
    watch: Watch = UNWATCHED,
) -> Result:
    """Time a rung's epochs, then test its model; return its Result.

    Epochs of the base come in between, so that other load slows both equally.
    """
    seconds, base_seconds = [], []
    for number in range(1, settings.epochs + 1):
        progress = ClimbProgress(rung.name, number)
        epoch_seconds, steps = time_epoch(rung, progress, watch)
        seconds.append(epoch_seconds)
        if base is not None:
            base_seconds.append(time_epoch(base, progress, watch)[0])

    dataset = datasets.load(settings.task)
    test = feeds.in_order(dataset.test, rung.device)
    outputs, targets = loops.predict(rung.model, test, rung.device)
    rung.model.train()
    changes = climb_result.kept_changes(results).with_change(rung.name)
    result = Result(
        rung.name,
        climb_result.base(results),
        tuple(seconds),
        tuple(base_seconds),
        min(steps * changes.batch_size, settings.images, len(dataset.train)),
        steps,
        rung.start_seconds,
        rung.peak_bytes,
        int((outputs.argmax(dim=1) == targets).sum()),
        len(targets),
    )
    return replace(result, kept=climb_result.is_kept(result, results))


def compare_directly(
    last: PreparedRung | None,
    settings: Climb,
    device: torch.device,
    results: Sequence[Result],
    watch: Watch = UNWATCHED,
) -> Direct | None:
    """Compare the best rung with the textbook loop; None if no rung was measured.

    `last` is the last rung that was kept. If another rung is best, set up that rung.
    """
    best = climb_result.best(results)
    if best is None:
        return None
    watch.report(ClimbProgress("", 1))
    try:
        textbook, rung = None, last
        if rung is None or rung.name != best.rung:
            rung = prepare(best.rung, settings, device, results[: results.index(best)])
        if best.rung != TEXTBOOK in climb_result.measured(results):
            textbook = prepare(TEXTBOOK, settings, device, ())
        return take_turns(textbook, rung, settings, watch)
    except CancelledError:
        raise
    except Exception as error:
        return Direct(best.rung, message=why(error))


def take_turns(
    textbook: PreparedRung | None,
    best: PreparedRung,
    settings: Climb,
    watch: Watch,
) -> Direct:
    """Time epochs of the textbook loop and of the best rung in turn.

    After each epoch of the best rung, measure the machine's limit, too.
    """
    seconds, textbook_seconds, limits = [], [], []
    for pair in range(1, settings.pairs + 1):
        progress = ClimbProgress("", pair)
        if textbook is not None:
            textbook_seconds.append(time_epoch(textbook, progress, watch)[0])
        seconds.append(time_epoch(best, progress, watch)[0])
        limit = roofline.measure(settings.task, settings.model, best.device, 1)
        limits.append(limit)
    epochs = tuple(seconds), tuple(textbook_seconds)
    return Direct(best.name, *epochs, tuple(limits))


def time_epoch(
    rung: PreparedRung, progress: ClimbProgress, watch: Watch
) -> tuple[float, int]:
    """Run an epoch; return its seconds and its number of steps.

    The device is idle when the clock starts and when it stops.
    """
    devices.synchronize(rung.device)
    start = reported = time.perf_counter()
    step, loss = 0, torch.tensor(math.nan)
    for step, loss in enumerate(rung.epoch(), 1):  # type: ignore # noqa: B007
        watch.check()
        if time.perf_counter() - reported > REPORT_SECONDS:
            watch.report(replace(progress, step=step))
            reported = time.perf_counter()
    devices.synchronize(rung.device)
    seconds = time.perf_counter() - start
    if not math.isfinite(loss):
        raise ExplainedError(
            f"The loss became {float(loss)}: the model can't learn anymore."
        )
    return seconds, step
