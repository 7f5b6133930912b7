"""Race two candidates, each a device with a number of CPU threads.

Both train with one configuration, trial after trial. They take turns, A B A B, so that
a drift of the machine affects both. The first trial of each is its warm-up. It also
shows how many steps the slower candidate makes in WARM_UP_SECONDS. In the other trials,
both make at most this number of steps.
"""

import math
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, repeat

from torch import Tensor

from core import devices, loops
from core.config import RunConfig
from core.data import datasets, feeds
from core.errors import CancelledError, explain
from core.lessons.compare.candidates import Candidate, Pair
from core.lessons.compare.race_result import (
    CandidateFailure,
    Race,
    Trial,
    TrialProgress,
)
from core.measure.environment import Environment, now
from core.measure.speedup import FEWEST_REPEATS
from core.results import StepProgress
from core.training import LossMeter, Training
from core.watch import UNWATCHED, Watch
from to_device import nvml

FEWEST_STEPS = 20  # with fewer, the time would be mostly that of the first batch
WARM_UP_SECONDS = 2.0  # a warm-up ends after this time, but not before FEWEST_STEPS
RACE_SECONDS = 40.0  # a race that takes longer ends after FEWEST_REPEATS


def race(
    config: RunConfig,
    candidates: Pair,
    steps: int,
    repeats: int,
    watch: Watch = UNWATCHED,
) -> Race:
    """Run a warm-up and `repeats` trials of each candidate, with at most `steps` steps.

    If a candidate fails, the race keeps the reason, and the other one goes on alone.
    Reports TrialProgress, Trial and CandidateFailure. After RACE_SECONDS, the race ends
    early, but not before FEWEST_REPEATS: a verdict needs this many.
    """
    deadline = time.perf_counter() + RACE_SECONDS
    datasets.load(config.task)  # so that no candidate is blamed if loading fails
    environments: list[Environment | None] = [None, None]
    trials: list[Trial] = []
    failures: dict[int, CandidateFailure] = {}
    for number in range(repeats + 1):
        for index, candidate in enumerate(candidates):
            if index in failures:
                continue
            try:
                with devices.cpu_threads(candidate.threads):
                    device = devices.resolve_timed(candidate.device)
                    result = trial(config, candidate, steps, (index, number), watch)
                    environments[index] = devices.environment(device)
                trials.append(result)
                watch.report(result)
            except CancelledError:
                raise
            except Exception as error:
                failures[index] = CandidateFailure(index, explain(error, (config,)))
                watch.report(failures[index])
        steps = min([steps, *(trial.steps for trial in trials)])
        if number >= FEWEST_REPEATS and time.perf_counter() > deadline:
            break
    first, second = environments
    settings = candidates, (first, second), config, steps, repeats
    return Race(*settings, tuple(trials), tuple(failures.values()), now())


def trial(
    config: RunConfig,
    candidate: Candidate,
    steps: int,
    at: tuple[int, int],
    watch: Watch,
) -> Trial:
    """Train for `steps` full batches, then evaluate on the whole test set.

    `at` is (candidate, repeat). Repeat 0 is the warm-up, whose training ends
    early if it takes longer than WARM_UP_SECONDS.
    """
    config = replace(config, device=candidate.device)
    dataset = datasets.load(config.task)
    whole = len(dataset.train) // config.batch_size * config.batch_size
    training = Training(config, dataset.train.first(whole), steps)
    device = training.device
    test = feeds.in_order(dataset.test, device)

    def report(progress: StepProgress) -> None:
        watch.report(TrialProgress(*at, progress.step, steps, progress.losses))

    meter = LossMeter(training, steps * config.batch_size, report)
    limit = math.inf if at[1] else WARM_UP_SECONDS
    joules = nvml.energy_counter(devices.uuid(device))
    before = joules() if joules else 0.0

    meter.begin_epoch()
    feed = first(training.feed, steps, limit, watch)
    for loss in training.train_epoch(feed):
        meter.add(loss)
    _, train_seconds = meter.end_epoch()

    start = time.perf_counter()  # end_epoch has synchronized the device
    loops.predict(training.model, watch.until_cancelled(test), device)
    devices.synchronize(device)
    evaluate_seconds = time.perf_counter() - start

    return Trial(
        *at,
        meter.step,
        train_seconds,
        meter.step * config.batch_size,
        evaluate_seconds,
        len(dataset.test),
        joules() - before if joules else None,
        tuple(meter.drawn),
    )


def first(
    feed: loops.Batches, steps: int, limit_seconds: float, watch: Watch
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield `steps` batches; after `limit_seconds`, stop at FEWEST_STEPS or later."""
    deadline = time.perf_counter() + limit_seconds
    endless = chain.from_iterable(repeat(feed))
    for step, batch in enumerate(watch.until_cancelled(endless), 1):
        yield batch
        late = time.perf_counter() > deadline
        if step == steps or (late and step >= FEWEST_STEPS):
            return
