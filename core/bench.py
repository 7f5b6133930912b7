"""The benchmark: what our choices bring, as ratios measured side by side.

    python -m core.bench --json            # some minutes
    python -m core.bench --json --quick    # under a minute, and less sure

Each pair is timed in turn, A B A B, in one process, so that whatever else the machine
does falls on both.
"""

import argparse
import json
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from functools import partial
from statistics import median
from typing import Any

import torch
from torch import nn

from core import devices, loops, models, training
from core.compare import crossover, race, step_profile, timing_pitfalls
from core.compare.candidates import candidates, default_pair, tell_apart
from core.compare.results import RACE_STEPS
from core.compare.verdict import verdict
from core.config import RunConfig
from core.data import batches, datasets
from core.errors import ExplainedError
from core.measure import records, timing
from core.measure.environment import now
from core.measure.rows import Row
from core.measure.speedup import FEWEST_REPEATS
from core.move import transfers
from core.speed import (
    copies,
    headline,
    ladder,
    loader,
    memory,
    results,
    rungs,
    vectorize,
)
from core.speed.climb import climb, why
from core.speed.ladder import Climb, Kept
from core.speed.roofline import DEVICE_SIZE, SIZES, flops_per_image

MAP_SECONDS, QUICK_MAP_SECONDS = 120.0, 8.0
LAB_SECONDS, QUICK_LAB_SECONDS = 120.0, 3.0  # of the loader lab
QUICK_IMAGES = 6000  # of an epoch
TARGET = 0.88  # test accuracy that the ANN is timed to
MOST_EPOCHS = 30  # that the textbook may take for it
SEEDS = 3  # of each of these runs

Piece = Callable[[], dict[str, Any]]  # of a record, to be measured


def epoch_of(
    rung: str, split: datasets.Split, device: torch.device, kept: Kept
) -> Callable[[], object]:
    """An epoch of the ANN as that rung of the ladder trains it."""
    epoch = getattr(rungs, rung)(split, models.ANN().to(device), device, kept)
    return lambda: run_through(epoch())


def run_through(steps: Iterable[object]) -> None:
    """Make all steps of an epoch; no loss is kept."""
    deque(steps, maxlen=0)


def train_epoch(split: datasets.Split, device: torch.device) -> Callable[[], object]:
    """An epoch of the ANN as a run trains it by default, with the feed "memory"."""
    trained = training.Training(RunConfig(feed="memory", device=device.type), split)
    return lambda: torch.stack(list(trained.train_epoch())).tolist()


def arithmetic(images: int, device: torch.device) -> Callable[[], None]:
    """As many operations as the ANN's training needs, in products of large matrices."""
    size = SIZES.get(device.type, DEVICE_SIZE)
    products = max(1, round(images * flops_per_image("ann") / (2 * size**3)))
    matrix = torch.rand(size, size, device=device)

    def work() -> None:
        for _ in range(products):
            matrix @ matrix

    return work


def compare_epochs(
    split: datasets.Split, device: torch.device, repeats: int
) -> dict[str, Any]:
    """Seconds of an epoch of the ANN, timed in turn: textbook, rungs, the floor."""
    large = ladder.with_change(Kept(), "larger_batch")
    works = {
        "textbook, batch 64": epoch_of("textbook", split, device, Kept()),
        "arithmetic floor": arithmetic(len(split), device),
        "memory, batch 64": train_epoch(split, device),
        "fused, batch 64": epoch_of("fused", split, device, Kept()),
        "fused, batch 256": epoch_of("larger_batch", split, device, Kept()),
        "whole step compiled, batch 64": epoch_of("whole_step", split, device, Kept()),
        "whole step compiled, batch 256": epoch_of("whole_step", split, device, large),
    }
    if device.type == "cuda":
        for kept in (Kept(), large):
            epoch = epoch_of("graphed", split, device, kept)
            works[f"CUDA graph, batch {kept.batch_size}"] = epoch
    return side_by_side(works, device, repeats)


def side_by_side(
    works: dict[str, Callable[[], object]], device: torch.device, repeats: int
) -> dict[str, Any]:
    """Seconds of each, timed in turn; one that fails is left out.

    "speedup" is how many times as fast as the textbook loop, "times_floor" how many
    times as long as the arithmetic alone takes: both must be among them.
    """
    works = dict(works)
    for name, work in list(works.items()):
        try:
            work()  # the warm-up, in which a rung is compiled
        except Exception as error:
            print(f"{name} is left out: {why(error)}", file=sys.stderr)
            del works[name]
    timings = timing.measure_side_by_side(list(works.values()), device, repeats, 0)
    found = {name: each.seconds for name, each in zip(works, timings, strict=True)}
    textbook, floor = found["textbook, batch 64"], found["arithmetic floor"]
    return {
        name: {
            "seconds": median(seconds),
            "least_seconds": min(seconds),
            "most_seconds": max(seconds),
            "n": len(seconds),
            "speedup": ratios(textbook, seconds),
            "times_floor": ratios(seconds, floor),
        }
        for name, seconds in found.items()
    }


def textbook_to(target: float, device: torch.device, seed: int) -> dict[str, Any]:
    """The textbook's ANN on Fashion-MNIST, epoch by epoch until it is that accurate.

    It is evaluated by our quick loop, not by a DataLoader, which takes longer.
    """
    dataset = datasets.load("fashion-mnist")
    began = time.perf_counter()
    torch.manual_seed(seed)
    model = models.ANN().to(device)
    epoch = rungs.textbook(dataset.train, model, device, Kept())
    test = batches.in_order(dataset.test, device)
    accuracy, epochs = 0.0, 0
    while accuracy < target and epochs < MOST_EPOCHS:
        model.train()
        run_through(epoch())
        epochs += 1
        outputs, labels = loops.predict(model, test, device)
        accuracy = loops.score(outputs, labels, nn.CrossEntropyLoss()).accuracy
    seconds = time.perf_counter() - began
    return dict(seed=seed, seconds=seconds, epochs=epochs, test_accuracy=accuracy)


def fast_run(model: str, device: torch.device, seed: int) -> dict[str, Any]:
    """A run of the model's fast setting on Fashion-MNIST, from the click to its end."""
    config = RunConfig.with_recipe(
        fast=True, model=model, device=device.type, seed=seed
    )
    began = time.perf_counter()
    accuracy = training.run(config).test_accuracy
    seconds = time.perf_counter() - began
    epochs = config.epochs
    return dict(seed=seed, seconds=seconds, epochs=epochs, test_accuracy=accuracy)


def time_to_accuracy(device: torch.device, seeds: Sequence[int]) -> dict[str, Any]:
    """How much sooner the fast setting is as accurate as the textbook can be.

    The textbook stops as soon as it is there; the fast setting goes to its end. The
    ratio is None where one of them did not get there.
    """
    datasets.load("fashion-mnist")  # before the clock runs
    fast_run("ann", device, seeds[0])  # warm-up
    textbook, fast = [], []
    for seed in seeds:
        textbook.append(textbook_to(TARGET, device, seed))
        fast.append(fast_run("ann", device, seed))
    there = all(each["test_accuracy"] >= TARGET for each in [*textbook, *fast])
    seconds = [[each["seconds"] for each in found] for found in (textbook, fast)]
    return {
        "target": TARGET,
        "n": len(seeds),
        "textbook": textbook,
        "fast": fast,
        "speedup": ratios(*seconds) if there else None,
        "fast_cnn": [fast_run("cnn", device, seed) for seed in seeds],
    }


def comparisons(
    task: str, device: torch.device, repeats: int, quick: bool
) -> dict[str, Piece]:
    """What the Compare and Speed pages measure, by the names that they look for.

    "figures" holds the same as rows, each with n, median, spread, device and date.
    """
    found = candidates(devices.describe())
    if device.type == "cpu":
        found = [each for each in found if each.device == "cpu"]
    pair = tell_apart(*default_pair(found))
    configs = [
        RunConfig.with_recipe(task=task, model=model, epochs=1)
        for model in (["ann"] if quick else RACE_STEPS)
    ]
    repeats = max(repeats, FEWEST_REPEATS)
    feeds = tuple((feed, str(device)) for feed in ("dataloader", "memory", "device"))
    seconds = QUICK_MAP_SECONDS if quick else MAP_SECONDS
    epochs, images = (1, QUICK_IMAGES) if quick else ladder.DEFAULTS["ann"]

    def races() -> dict[str, Any]:
        found = [race.race(c, pair, RACE_STEPS[c.model], repeats) for c in configs]
        found = [each.without_losses() for each in found]
        return section("races", found) | {"verdicts": list(map(verdict, found))}

    def labs() -> dict[str, Any]:
        return section("labs", [timing_pitfalls.measure(str(device))])

    def breakdowns() -> dict[str, Any]:
        steps = (each for c in configs for each in step_profile.measure(c, feeds))
        return section("breakdowns", [replace(each, trace=None) for each in steps])

    def crossovers() -> dict[str, Any]:
        return section("crossovers", [crossover.measure(pair, seconds)])

    def climbs() -> dict[str, Any]:
        done = climb(Climb(task, "ann", str(device), epochs, images))
        said = f"The ladder. {headline.verdict(done)}"
        return section("climbs", [done]) | {"verdicts": [said]}

    return {
        piece.__name__: piece for piece in (races, labs, breakdowns, crossovers, climbs)
    }


def speed_labs(task: str, device: torch.device, quick: bool) -> dict[str, Piece]:
    """The labs of the Speed page, and their figures as flat rows."""
    plan = results.loader_plan(devices.describe())
    budget = QUICK_LAB_SECONDS if quick else LAB_SECONDS
    name = str(device)
    counts = {1: 20, 1_000: 5, 100_000: 2} if quick else vectorize.REPEATS
    labs: dict[str, Callable[[], Any]] = {
        "loader": lambda: loader.measure(task, name, plan, budget),
        "memory": lambda: memory.measure(name, repeats=2 if quick else memory.REPEATS),
        "vectorize": lambda: vectorize.measure(name, repeats=counts),
        "copies": lambda: copies.measure(name),
    }

    def piece(lab: str) -> dict[str, Any]:
        found = labs[lab]()
        return {"speed_labs": {lab: asdict(found), "figures": figures([found])}}

    return {lab: partial(piece, lab) for lab in labs}


def pieces(
    task: str, device: torch.device, repeats: int, quick: bool
) -> dict[str, Piece]:
    """All that a record is made of; each is measured when it is called."""
    split = datasets.load(task).train
    split = split.first(QUICK_IMAGES) if quick else split
    sizes = transfers.SIZES[:-2] if quick else transfers.SIZES
    environment = asdict(devices.environment(device))

    def epoch() -> dict[str, Any]:
        found, date = compare_epochs(split, device, repeats), now()
        rows = {n: {**each, **environment, "date": date} for n, each in found.items()}
        return {"epoch": rows}

    def copied() -> dict[str, Any]:
        found = transfers.measure(str(device), sizes=sizes).measured
        return {"transfers": list(map(asdict, found))}

    def reached() -> dict[str, Any]:
        if quick or task != "fashion-mnist":
            return {"time_to_accuracy": None}
        seeds = range(min(SEEDS, repeats))
        return {"time_to_accuracy": time_to_accuracy(device, seeds)}

    return {
        "epoch": epoch,
        "transfers": copied,
        "time_to_accuracy": reached,
        **comparisons(task, device, repeats, quick),
        **speed_labs(task, device, quick),
    }


def head(task: str, device: torch.device) -> dict[str, Any]:
    """What a record begins with."""
    environment = asdict(devices.environment(device))
    return {"date": now(), "environment": environment, "task": task}


def section(name: str, found: Sequence[Any]) -> dict[str, Any]:
    """Results as a record has them, and the same as rows."""
    return {name: list(map(asdict, found)), "figures": figures(found)}


def merged(found: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Pieces as one: lists of one name are put together, and so are dicts."""
    whole: dict[str, Any] = {}
    for name, value in (item for piece in found for item in piece.items()):
        if name not in whole:
            whole[name] = value
        elif isinstance(value, dict):
            whole[name] = merged([whole[name], value])
        else:
            whole[name] = whole[name] + value
    return whole


def figures(measured: Iterable[Any]) -> list[Row]:
    """All results as flat rows."""
    return [row for each in measured for row in each.rows()]


def ratios(dividend: Sequence[float], divisor: Sequence[float]) -> dict[str, float]:
    """The ratio of each pair of repeats: median, least and most."""
    pairs = [a / b for a, b in zip(dividend, divisor, strict=True)]
    return {"median": median(pairs), "least": min(pairs), "most": max(pairs)}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m core.bench", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--record", action="store_true", help="keep it in core/reference"
    )
    parser.add_argument("--quick", action="store_true", help="less of everything")
    parser.add_argument("--repeats", type=int, help="default: 5, quick: 1")
    parser.add_argument("--device", default="auto", help="default: auto")
    arguments = parser.parse_args()
    quick = arguments.quick
    repeats = (1 if quick else 5) if arguments.repeats is None else arguments.repeats
    if repeats < 1:
        parser.exit(2, f"{parser.prog}: --repeats must be 1 or more\n")

    devices.leave_a_core()
    task = "sprites" if datasets.status().source is None else "fashion-mnist"
    try:
        device = devices.resolve(arguments.device)
        datasets.load(task)
    except ExplainedError as error:
        parser.exit(2, f"{parser.prog}: {error}\n")
    measured = pieces(task, device, repeats, quick)
    result = {**head(task, device), **merged(piece() for piece in measured.values())}
    if arguments.record:
        path = records.write(result)
        print(f"recorded in {path}", file=sys.stderr)
    if arguments.json:
        print(json.dumps(result))
    else:
        say(result)


def say(result: dict[str, Any]) -> None:
    """The headlines, in words."""
    for name, each in result["epoch"].items():
        print(
            f"{name:30} {each['seconds']:7.3f} s an epoch, "
            f"{spread(each['speedup'])} times as fast as the textbook loop, "
            f"{spread(each['times_floor'])} times the arithmetic, n = {each['n']}"
        )
    if (reached := result["time_to_accuracy"]) and reached["speedup"]:
        print(
            f"the fast setting has the ANN at {TARGET:.0%} "
            f"{spread(reached['speedup'])} times as soon as the textbook loop, "
            f"n = {reached['n']}"
        )
    for text in result["verdicts"]:
        print(text.replace("**", ""))


def spread(found: dict[str, float]) -> str:
    """A ratio as its median, least and most: 6.8 (6.5 to 7.0)."""
    return "{median:.1f} ({least:.1f} to {most:.1f})".format(**found)


if __name__ == "__main__":
    main()
