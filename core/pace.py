"""Time some steps of each recipe, so that a run can say how long it will take."""

import itertools
import statistics
import time

from core import devices
from core.config import FAST, MODELS_FOR, RECIPES, RunConfig
from core.data import datasets, feeds
from core.measure.environment import now
from core.measure.pace_result import Pace, Paces
from core.training import TRAIN_SAMPLE, Training
from core.watch import UNWATCHED, Watch

WARM_UP_STEPS = 5  # until the caches are warm and all kernels are loaded
CHUNK_STEPS, CHUNKS = 10, 5  # the pace is the median of CHUNKS timings
EVALUATED = 1_000  # images; a run evaluates many more


def measure(task: str, device: str = "auto", watch: Watch = UNWATCHED) -> Paces:
    """Time the usual and the fast recipe of each model that learns `task`.

    This takes about 5 s on two CPU cores. Raises ExplainedError if the device or the
    data is missing.
    """
    configs = [
        RunConfig.with_recipe(fast=fast, task=task, model=model, device=device)
        for fast, recipes in ((False, RECIPES), (True, FAST))
        for model in recipes
        if model in MODELS_FOR[task]
    ]
    paces = tuple(time_steps(config, watch) for config in configs)
    environment = devices.environment(devices.resolve_timed(device))
    return Paces(paces, environment, now())


def time_steps(config: RunConfig, watch: Watch = UNWATCHED) -> Pace:
    """Time CHUNKS * CHUNK_STEPS training steps, and the evaluation of some images."""
    training = Training(config)
    device, dataset = training.device, datasets.load(config.task)
    batches = watch.until_cancelled(
        itertools.chain.from_iterable(itertools.repeat(training.feed))
    )
    losses = training.train_epoch(batches)
    seconds = []
    for steps in (WARM_UP_STEPS, *[CHUNK_STEPS] * CHUNKS):
        devices.synchronize(device)
        began = time.perf_counter()
        for _ in itertools.islice(losses, steps):
            pass
        devices.synchronize(device)
        seconds.append((time.perf_counter() - began) / (steps * config.batch_size))

    sample = feeds.in_order(dataset.test.first(EVALUATED), device)
    evaluating = []
    for _ in range(2):  # the first one is a warm-up
        began = time.perf_counter()
        training.evaluate(watch.until_cancelled(sample))
        evaluating.append((time.perf_counter() - began) / EVALUATED)
    return Pace(
        config,
        training=statistics.median(seconds[1:]),
        evaluating=evaluating[-1],
        evaluated=min(TRAIN_SAMPLE, len(dataset.train)) + len(dataset.test),
    )
