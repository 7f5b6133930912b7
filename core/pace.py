"""Time some steps of each recipe, so that a run can say how long it will take."""

import itertools
import statistics

from core import devices
from core.config import FAST, MODELS_FOR, RECIPES, RunConfig
from core.data import datasets
from core.measure import timing
from core.measure.environment import now
from core.measure.pace_result import Pace, Paces
from core.training import TRAIN_SAMPLE, Training
from core.watch import UNWATCHED, Watch

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
    chunks = timing.measure(
        lambda: [*itertools.islice(losses, CHUNK_STEPS)], device, CHUNKS
    )
    sample = training.in_order(dataset.test.first(EVALUATED))
    (evaluation,) = timing.measure(
        lambda: training.evaluate(watch.until_cancelled(sample)), device, repeats=1
    )
    return Pace(
        config,
        training=statistics.median(chunks) / (CHUNK_STEPS * config.batch_size),
        evaluating=evaluation / EVALUATED,
        evaluated=min(TRAIN_SAMPLE, len(dataset.train)) + len(dataset.test),
    )
