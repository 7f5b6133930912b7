"""The race: one configuration, two contenders, heat after heat on an idle machine.

Both train and evaluate with the loops of core.loops. They take turns, A B A B, so that
a drift of the machine hits both. The first heat of each is the warm-up: it also shows
how many steps the slower one can make in a bearable time, and both then make as many.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import torch
from torch import Tensor, nn

from core import batches, data, energy, loops, models, run
from core import device as devices
from core.comparison import (
    FEWEST_REPEATS,
    Contender,
    Failure,
    Heat,
    Lap,
    Race,
    RaceStarted,
    now,
)
from core.config import RunConfig
from core.errors import CancelledError, explain
from core.meter import LossMeter
from core.reports import Steps

FEWEST_STEPS = 20  # fewer would time the clock and the first batch
WARM_UP_SECONDS = 2.0  # of training, at most; an epoch may take a hundred times that
RACE_SECONDS = 40.0  # after which a race ends that has FEWEST_REPEATS

Report = Callable[[RaceStarted | Lap | Heat | Failure], None]


def race(
    config: RunConfig,
    contenders: tuple[Contender, Contender],
    steps: int,
    repeats: int,
    report: Report = run.unwatched,
    cancelled: Callable[[], bool] = lambda: False,
) -> Race:
    """`repeats` counted heats of `steps` training steps each, fewer if they are slow.

    A contender that fails is out, with its reason; the other one goes on alone.
    CancelledError ends the race. One that takes longer than RACE_SECONDS ends after as
    few repeats as a verdict needs.
    """
    deadline = time.perf_counter() + RACE_SECONDS
    data.load(config.task)  # if that fails, it is nobody's defeat
    report(RaceStarted(contenders, config, steps, repeats))
    environments: list[dict | None] = [None, None]
    heats: list[Heat] = []
    failures: dict[int, Failure] = {}
    for repeat in range(repeats + 1):
        for index, contender in enumerate(contenders):
            if index in failures:
                continue
            at = (index, repeat)
            try:
                with devices.cpu_threads(contender.threads):
                    heats.append(heat(config, contender, steps, at, report, cancelled))
                    device = devices.resolve(contender.device)
                    environments[index] = devices.environment(device)
                report(heats[-1])
            except CancelledError:
                raise
            except Exception as error:
                failures[index] = Failure(index, explain(error, (config,)))
                report(failures[index])
        steps = min([steps, *(each.steps for each in heats)])
        if repeat >= FEWEST_REPEATS and time.perf_counter() > deadline:
            break
    return Race(
        contenders,
        (environments[0], environments[1]),
        config,
        steps,
        repeats,
        tuple(heats),
        tuple(failures.values()),
        now(),
    )


def heat(
    config: RunConfig,
    contender: Contender,
    steps: int,
    at: tuple[int, int],
    report: Report,
    cancelled: Callable[[], bool],
) -> Heat:
    """Train for `steps` full batches, then evaluate on the whole test set.

    The warm-up ends earlier where it takes longer than WARM_UP_SECONDS.
    """
    device = devices.resolve(contender.device)
    config = replace(config, device=contender.device)
    dataset = data.load(config.task)
    whole = len(dataset.train) // config.batch_size * config.batch_size
    torch.manual_seed(config.seed)
    model = models.build(config.model).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = run.make_optimizer(model, config, device)
    scheduler = run.make_scheduler(optimizer, config, steps)
    feed = batches.make(
        config.feed,
        dataset.train.first(whole),
        config.batch_size,
        device,
        config.seed,
        config.augment,
    )
    test = run.evaluation_batches(dataset.test, device)

    def stoppable(source: batches.Batches) -> Iterator[tuple[Tensor, Tensor]]:
        for batch in source:
            if cancelled():
                raise CancelledError
            yield batch

    def some(source: batches.Batches) -> Iterator[tuple[Tensor, Tensor]]:
        deadline = time.perf_counter() + WARM_UP_SECONDS
        for step, batch in enumerate(epochs(source), 1):
            yield batch
            late = at[1] == 0 and time.perf_counter() > deadline
            if step == steps or (late and step >= FEWEST_STEPS):
                return

    def epochs(source: batches.Batches) -> Iterator[tuple[Tensor, Tensor]]:
        while True:
            yield from stoppable(source)

    def lap(event: Steps) -> None:
        report(Lap(*at, event.step, steps, event.losses))

    meter = LossMeter(
        device,
        steps * config.batch_size,
        config.batch_size,
        steps,
        config.learning_rate,
        lap,
    )
    joules = energy.counter(device)
    before = joules() if joules else 0.0

    meter.begin_epoch()
    for loss in loops.train_epoch(
        model, some(feed), criterion, optimizer, device, scheduler
    ):
        meter.add(loss)
    _, train_seconds = meter.end_epoch()

    start = time.perf_counter()  # end_epoch has synchronized
    loops.predict(model, stoppable(test), device)
    devices.synchronize(device)
    evaluate_seconds = time.perf_counter() - start

    return Heat(
        *at,
        meter.step,
        train_seconds,
        meter.step * config.batch_size,
        evaluate_seconds,
        len(dataset.test),
        joules() - before if joules else None,
        tuple(meter.drawn),
    )
