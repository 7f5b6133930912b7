"""Climb the ladder: train on one rung after the other and measure each.

Every rung begins with the same weights and sees the images in the same order.
"""

import gc
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice

import torch
from torch import nn

from core import data, ladder, limit, loops, memory, models, run, speed
from core import device as devices
from core.comparison import now
from core.errors import CancelledError, ExplainedError, explain, is_out_of_memory
from core.ladder import Climb, Climbed, Limit, Progress, Result, Rung

SEED = 0  # of the weights
MEMORY_STEPS = 4  # whose peak memory is measured
REPORT_SECONDS = 0.2

Report = Callable[[Limit | Progress | Result], None]

NO_COMPILER = (
    "torch.compile writes C++ for the CPU and found no compiler to build it with. "
    "Install one and climb again: apt-get install g++ on Debian and Ubuntu, "
    "xcode-select --install on macOS, the Build Tools for Visual Studio on Windows."
)


def climb(
    wanted: Climb,
    done: Sequence[Result] = (),
    report: Report = run.unwatched,
    cancelled: Callable[[], bool] = lambda: False,
) -> Climbed:
    """Measure every rung that `done` does not hold yet; reports each as it is known.

    A rung that fails says why, and the next one builds on what was kept before.
    """
    device = devices.resolve(wanted.device)
    data.load(wanted.task)  # if that fails, no rung is to blame
    found = limit.measure(wanted.task, wanted.model, device)
    report(found)
    results = list(done)
    backend = devices.backend(device)
    for rung in ladder.RUNGS[len(results) :]:
        obstacle = rung.obstacle(backend, wanted.model)
        if obstacle:
            before = ladder.base(results)
            result = Result(rung.name, before, applies=False, message=obstacle)
        else:
            result = try_rung(rung, wanted, device, results, report, cancelled)
        results.append(result)
        report(result)
    environment = devices.environment(device)
    return Climbed(wanted, found, tuple(results), environment, now())


def try_rung(
    rung: Rung,
    wanted: Climb,
    device: torch.device,
    results: Sequence[Result],
    report: Report,
    cancelled: Callable[[], bool],
) -> Result:
    """What `measure` finds, or why it failed."""
    before = ladder.base(results)
    try:
        return measure(rung, wanted, device, results, report, cancelled)
    except CancelledError:
        raise
    except Exception as error:
        return Result(rung.name, before, message=why(error))
    finally:
        torch.compiler.reset()  # what was compiled holds on to its model
        gc.collect()  # a loader's worker processes end with it


def why(error: Exception) -> str:
    """A sentence on what failed, and what to do about it."""
    if isinstance(error, ExplainedError) or is_out_of_memory(error):
        return explain(error)
    text = f"{error} {getattr(error, 'inner_exception', '')}"
    if "C++ compiler" in text or "Cxx" in text or "cl is not found" in text:
        return NO_COMPILER
    return explain(error)


def measure(
    rung: Rung,
    wanted: Climb,
    device: torch.device,
    results: Sequence[Result],
    report: Report = run.unwatched,
    cancelled: Callable[[], bool] = lambda: False,
) -> Result:
    """Train on one rung: seconds of each epoch, peak memory, test accuracy.

    Some steps come first, so that no epoch pays for what is set up or compiled in them.
    """
    dataset = data.load(wanted.task)
    kept = ladder.kept(results)
    report(Progress(rung.name, 0, 0))
    torch.manual_seed(SEED)
    model = build(wanted.model).to(device)
    before = devices.allocated(device) or 0

    start = time.perf_counter()
    with cold_compiler(rung):
        epoch = getattr(speed, rung.name)(dataset.train, model, device, kept)
        first_steps = epoch()
        next(first_steps)
    devices.synchronize(device)
    start_seconds = time.perf_counter() - start

    resident = (devices.allocated(device) or 0) - before
    peak = memory.peak_bytes(lambda: take(first_steps, MEMORY_STEPS), device)
    first_steps.close()

    seconds = []
    step, loss = 0, math.nan
    for number in range(1, wanted.epochs + 1):
        devices.synchronize(device)
        start = reported = time.perf_counter()
        for step, loss in enumerate(epoch(), 1):  # noqa: B007 it is asked for below
            if cancelled():
                raise CancelledError
            if time.perf_counter() - reported > REPORT_SECONDS:
                report(Progress(rung.name, number, step))
                reported = time.perf_counter()
        devices.synchronize(device)
        seconds.append(time.perf_counter() - start)
    if not math.isfinite(loss):
        raise ExplainedError(f"The loss became {float(loss)}: it has learnt nothing.")

    outputs, targets = loops.predict(
        model, run.evaluation_batches(dataset.test, device), device
    )
    batch_size = ladder.with_change(kept, rung.name).batch_size
    measured = Result(
        rung.name,
        ladder.base(results),
        tuple(seconds),
        min(step * batch_size, len(dataset.train)),
        step,
        start_seconds,
        None if peak is None else resident + peak,
        int((outputs.argmax(dim=1) == targets).sum()),
        len(targets),
    )
    return replace(measured, kept=ladder.is_kept(measured, results))


@contextmanager
def cold_compiler(rung: Rung) -> Iterator[None]:
    """Within it torch.compile finds nothing that was compiled before."""
    if rung.name not in ("compiled", "graphed"):
        yield
        return
    from torch._inductor import config  # takes a second

    torch.compiler.reset()
    with config.patch(force_disable_caches=True):
        yield


def take(losses: speed.Losses, count: int) -> None:
    """Make so many steps, or as many as are left in the epoch."""
    for _ in islice(losses, count):
        pass


def build(model: str) -> nn.Module:
    """The model as the textbook has it: channels lie one after the other in memory."""
    return models.build(model).to(memory_format=torch.contiguous_format)
