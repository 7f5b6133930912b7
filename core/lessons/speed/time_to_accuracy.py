"""Train a CNN with more and more changes; time how soon it is accurate."""

import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain

import torch
from torch import nn

from core import devices, models
from core.data import datasets
from core.lessons.speed import recipe, rungs
from core.lessons.speed.climb_result import Kept
from core.lessons.speed.recipe import Recipe
from core.lessons.speed.time_to_accuracy_result import Tested, TimeToAccuracy
from core.measure.environment import now
from core.watch import UNWATCHED, Watch

SEED = 0
WHOLE = recipe.CNN
PLAIN = replace(WHOLE, half=False, label_smoothing=0.0, whiten=False, mirror=False)
# Each dict stands for one training, with the recipes by which the trained model is
# tested. Recipes that differ only in the test share a training.
TRAININGS: tuple[dict[str, Recipe], ...] = (
    {"textbook": PLAIN},
    {"schedule": PLAIN},
    {"half": replace(PLAIN, half=True)},
    {"smoothing": replace(WHOLE, whiten=False, mirror=False)},
    {"whiten": replace(WHOLE, mirror=False), "mirror": WHOLE},
)


def measure(
    task: str, device_name: str, epochs: int, watch: Watch = UNWATCHED
) -> TimeToAccuracy:
    """Run each of TRAININGS for `epochs` epochs. Reports each result, a Tested."""
    device, data = devices.resolve_timed(device_name), datasets.load(task)
    tests = []
    few = data.train.first(WHOLE.batch_size)
    warmed = recipe.build(WHOLE, few.images).to(device)
    deque(recipe.train(WHOLE, warmed, (few.images, few.labels)), maxlen=0)
    for ways in TRAININGS:
        if "half" in ways and not recipe.has_bfloat16(device):
            continue
        for test in tested(ways, data, device, epochs, SEED, watch):
            tests.append(test)
            watch.report(test)
    environment = devices.environment(device)
    return TimeToAccuracy(tuple(tests), task, environment, now(), SEED)


def tested(
    ways: dict[str, Recipe],
    data: datasets.Dataset,
    device: torch.device,
    epochs: int,
    seed: int,
    watch: Watch,
) -> Iterator[Tested]:
    """Train once; after each epoch, test the model with each recipe in `ways`.

    The `seconds` of a Tested are the training so far plus that one test.
    """
    began, testing = time.perf_counter(), 0.0
    torch.manual_seed(seed)
    images, labels, test = data.train.images, data.train.labels, data.test
    plan = replace(next(iter(ways.values())), epochs=epochs)
    model: nn.Module
    steps: Iterable[object]
    if "textbook" in ways:
        model, size = models.build(plan.model).to(device), Kept().batch_size
        epoch = rungs.textbook(data.train, model, device, Kept())
        steps = chain.from_iterable(epoch() for _ in range(epochs))
    else:
        model, size = recipe.build(plan, images).to(device), plan.batch_size
        steps = recipe.train(plan, model, (images, labels))
    in_epoch = -(-len(labels) // size)
    for step, _ in enumerate(watch.until_cancelled(steps), 1):
        if step % in_epoch:
            continue
        devices.synchronize(device)
        trained = time.perf_counter() - began - testing
        for way, tester in ways.items():
            start = time.perf_counter()
            share = recipe.accuracy(tester, model, (test.images, test.labels))
            seconds = time.perf_counter() - start
            testing += seconds
            yield Tested(way, step // in_epoch, trained + seconds, share)
