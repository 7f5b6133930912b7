"""The benchmark: what our choices bring, as ratios measured side by side.

    python -m core.bench --json            # about half an hour on a CPU
    python -m core.bench --json --quick    # under a minute, and less sure

Each pair is timed in turn, A B A B, so that other work on the machine slows both.
"""

import json
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import chain
from pathlib import Path
from statistics import mean, median
from typing import Any

import torch
from torch import nn

from core import devices, loops, models, training
from core.config import RunConfig
from core.data import batches, datasets
from core.errors import ExplainedError, Parser
from core.lessons.compare import crossover, race, step_profile, timing_pitfalls
from core.lessons.compare.candidates import candidates, default_pair, tell_apart
from core.lessons.compare.race_result import RACE_STEPS, verdict
from core.lessons.model import transfers
from core.lessons.speed import copies, loader, memory, recipe, rungs, vectorize
from core.lessons.speed.climb import climb, why
from core.lessons.speed.climb_result import DEFAULTS, Climb, Kept
from core.lessons.speed.climb_result import verdict as climb_verdict
from core.lessons.speed.loader_result import loader_plan
from core.lessons.speed.roofline import DEVICE_SIZE, SIZES, flops_per_image
from core.lessons.speed.time_to_accuracy_result import TARGET
from core.measure import timing
from core.measure.environment import now
from core.measure.speedup import FEWEST_REPEATS
from core.store.codec import dumps, joined

REFERENCE = Path(__file__).with_name("reference")
MAP_SECONDS, QUICK_MAP_SECONDS = 120.0, 8.0
LAB_SECONDS, QUICK_LAB_SECONDS = 120.0, 3.0  # for the loader lab
QUICK_IMAGES = 6000  # in an epoch
TARGETS = {"ann": 0.88, "cnn": TARGET}  # test accuracies that models are timed to
SHORTEST = {"ann": recipe.ANN, "cnn": replace(recipe.CNN, epochs=4)}
MOST_EPOCHS = {"ann": 30, "cnn": 12}  # of the textbook's loop
SEEDS = 3  # for each time to accuracy

Piece = Callable[[], dict[str, Any]]  # measures a part of a record
Job = tuple[tuple[Any, ...], Any]  # arguments and result


def epoch_of(
    rung: str, split: datasets.Split, device: torch.device, kept: Kept
) -> Callable[[], object]:
    """An epoch of the ANN on a rung of the ladder."""
    epoch = getattr(rungs, rung)(split, models.ANN().to(device), device, kept)
    return lambda: run_through(epoch())


def run_through(steps: Iterable[object]) -> None:
    """Make all steps of an epoch; no loss is kept."""
    deque(steps, maxlen=0)


def arithmetic(images: int, device: torch.device) -> Callable[[], None]:
    """As many operations as an epoch of the ANN has, in products of large matrices."""
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
    large = Kept().with_change("larger_batch")
    run = training.Training(RunConfig(feed="memory", device=device.type), split)
    works = {
        "textbook, batch 64": epoch_of("textbook", split, device, Kept()),
        "arithmetic floor": arithmetic(len(split), device),
        "memory, batch 64": lambda: torch.stack(list(run.train_epoch())).tolist(),
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
    """Seconds of each, timed in turn, without those that fail.

    "speedup" is over the textbook loop, "times_floor" over the arithmetic alone: both
    must be among the works.
    """
    works = dict(works)
    for name, work in list(works.items()):
        try:
            work()  # the warm-up, in which a rung is compiled
        except Exception as error:
            print(f"{name} is left out: {why(error)}", file=sys.stderr)
            del works[name]
    timings = timing.measure_side_by_side(list(works.values()), device, repeats, 0)
    taken = {name: each.seconds for name, each in zip(works, timings, strict=True)}
    textbook, floor = taken["textbook, batch 64"], taken["arithmetic floor"]
    return {
        name: {
            "seconds": median(seconds),
            "least_seconds": min(seconds),
            "most_seconds": max(seconds),
            "n": len(seconds),
            "speedup": ratios(textbook, seconds),
            "times_floor": ratios(seconds, floor),
        }
        for name, seconds in taken.items()
    }


def textbook_to(
    target: float, model: str, device: torch.device, seed: int
) -> dict[str, Any]:
    """The textbook's loop on Fashion-MNIST, until the model is that accurate.

    It is evaluated by our quick loop; a DataLoader would take longer.
    """
    dataset = datasets.load("fashion-mnist")
    torch.manual_seed(seed)
    network = models.build(model).to(device)
    epoch = rungs.textbook(dataset.train, network, device, Kept())
    test = batches.in_order(dataset.test, device)
    accuracy, epochs = 0.0, 0
    while accuracy < target and epochs < MOST_EPOCHS[model]:
        network.train()
        run_through(epoch())
        epochs += 1
        outputs, labels = loops.predict(network, test, device)
        accuracy = loops.score(outputs, labels, nn.CrossEntropyLoss()).accuracy
    return dict(epochs=epochs, test_accuracy=accuracy)


def setting_run(
    fast: bool, model: str, device: torch.device, seed: int
) -> dict[str, Any]:
    """A run of the model's default or fast setting on Fashion-MNIST."""
    config = RunConfig.with_recipe(
        fast=fast, model=model, device=device.type, seed=seed
    )
    accuracy = training.run(config).test_accuracy
    return dict(epochs=config.epochs, test_accuracy=accuracy)


def recipe_run(model: str, device: torch.device, seed: int) -> dict[str, Any]:
    """A training by core.lessons.speed.recipe, no longer than its target asks for."""
    plan, data = SHORTEST[model], datasets.load("fashion-mnist")
    torch.manual_seed(seed)
    images, labels = data.train.images, data.train.labels
    network = recipe.build(plan, images).to(device)
    run_through(recipe.train(plan, network, (images, labels)))
    accuracy = recipe.accuracy(plan, network, (data.test.images, data.test.labels))
    return dict(epochs=plan.epochs, test_accuracy=accuracy)


def time_to_accuracy(
    model: str, device: torch.device, seeds: Sequence[int]
) -> dict[str, Any]:
    """How soon each setting reaches its target, in turn, over the first two of them.

    The textbook's loop stops there, the others go to their end. A ratio is None where
    the mean accuracy of one of its two misses the target.
    """
    datasets.load("fashion-mnist")  # before the clock runs
    target = TARGETS[model]
    ways: dict[str, Callable[..., dict[str, Any]]] = {
        "textbook": partial(textbook_to, target),
        "default": partial(setting_run, False),
        "fast": partial(setting_run, True),
        "recipe": recipe_run,
    }
    recipe_run("ann", device, seeds[0])  # warm-up
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in ways}
    for seed in seeds:
        for name, way in ways.items():
            began = time.perf_counter()
            run = way(model, device, seed)
            taken = time.perf_counter() - began
            runs[name].append({"seed": seed, "seconds": taken, **run})
    seconds = {name: [run["seconds"] for run in made] for name, made in runs.items()}
    there = {
        name: mean(run["test_accuracy"] for run in made) >= target
        for name, made in runs.items()
    }
    speedups = {
        f"{name} over {base}": ratios(seconds[base], seconds[name])
        if there[base] and there[name]
        else None
        for base in ("textbook", "default")
        for name in ways
        if name not in ("textbook", base)
    }
    return {"target": target, "n": len(seeds), **runs, "speedups": speedups}


def comparisons(
    task: str, device: torch.device, repeats: int, quick: bool
) -> dict[str, Piece]:
    """The measurements of Compare, and a climb; "figures" has the same as rows."""
    contenders = candidates(devices.describe())
    if device.type == "cpu":
        contenders = [each for each in contenders if each.device == "cpu"]
    pair = tell_apart(*default_pair(contenders))
    configs = [
        RunConfig.with_recipe(task=task, model=model, epochs=1)
        for model in (["ann"] if quick else RACE_STEPS)
    ]
    repeats = max(repeats, FEWEST_REPEATS)
    feeds = tuple((feed, str(device)) for feed in ("dataloader", "memory", "device"))
    seconds = QUICK_MAP_SECONDS if quick else MAP_SECONDS
    epochs, images = (1, QUICK_IMAGES) if quick else DEFAULTS["ann"]

    def races() -> dict[str, Any]:
        calls = [(c, pair, RACE_STEPS[c.model], repeats) for c in configs]
        found = [race.race(*call) for call in calls]
        short = [asdict(each.without_losses()) for each in found]
        jobs = zip(calls, found, strict=True)
        whole = section("races", "compare.race:race", *jobs)
        return whole | {"races": short, "verdicts": list(map(verdict, found))}

    def labs() -> dict[str, Any]:
        job = (str(device),), timing_pitfalls.measure(str(device))
        return section("labs", "compare.timing_pitfalls:measure", job)

    def breakdowns() -> dict[str, Any]:
        jobs = []
        for config in configs:
            profiles = step_profile.measure(config, feeds)
            found = tuple(replace(each, trace=None) for each in profiles)
            jobs.append(((config, feeds), found))
        return section("breakdowns", "compare.step_profile:measure", *jobs)

    def crossovers() -> dict[str, Any]:
        job = (pair, seconds), crossover.measure(pair, seconds)
        return section("crossovers", "compare.crossover:measure", job)

    def climbs() -> dict[str, Any]:
        wanted = Climb(task, "ann", str(device), epochs, images)
        done = climb(wanted)
        whole = section("climbs", "speed.climb:climb", ((wanted, ()), done))
        return whole | {"verdicts": [f"The ladder. {climb_verdict(done)}"]}

    return {
        piece.__name__: piece for piece in (races, labs, breakdowns, crossovers, climbs)
    }


def speed_labs(task: str, device: torch.device, quick: bool) -> dict[str, Piece]:
    """The labs of the Speed page, and their figures as flat rows."""
    plan = loader_plan(devices.describe())
    budget = QUICK_LAB_SECONDS if quick else LAB_SECONDS
    name = str(device)
    counts = {1: 20, 1_000: 5, 100_000: 2} if quick else vectorize.REPEATS
    labs: dict[str, Callable[[], Any]] = {
        "loader": partial(loader.measure, task, name, plan, budget),
        "memory": partial(memory.measure, name, repeats=2 if quick else memory.REPEATS),
        "vectorize": partial(vectorize.measure, name, repeats=counts),
        "copies": partial(copies.measure, name),
    }

    def piece(lab: str) -> dict[str, Any]:
        found = labs[lab]()
        arguments = (task, name, plan, budget) if lab == "loader" else (name,)
        whole = {"speed_labs": {lab: asdict(found), "figures": found.rows()}}
        return whole | recorded(f"speed.{lab}:measure", (arguments, found))

    return {lab: partial(piece, lab) for lab in labs}


def pieces(
    task: str, device: torch.device, repeats: int, quick: bool
) -> dict[str, Piece]:
    """All parts of a record; each is measured when it is called."""
    split = datasets.load(task).train
    split = split.first(QUICK_IMAGES) if quick else split
    sizes = transfers.SIZES[:-2] if quick else transfers.SIZES
    environment = asdict(devices.environment(device))

    def epoch() -> dict[str, Any]:
        ways = compare_epochs(split, device, repeats)
        measured = {**environment, "date": now()}
        return {"epoch": {name: figures | measured for name, figures in ways.items()}}

    def copied() -> dict[str, Any]:
        found = transfers.measure(str(device), sizes=sizes)
        whole = {"transfers": list(map(asdict, found.measured))}
        return whole | recorded("model.transfers:measure", ((str(device),), found))

    def reached() -> dict[str, Any]:
        if quick or task != "fashion-mnist":
            return {"time_to_accuracy": None}
        seeds = range(min(SEEDS, repeats))
        found = {model: time_to_accuracy(model, device, seeds) for model in TARGETS}
        return {"time_to_accuracy": found}

    return {
        "epoch": epoch,
        "transfers": copied,
        "time_to_accuracy": reached,
        **comparisons(task, device, repeats, quick),
        **speed_labs(task, device, quick),
    }


def head(task: str, device: torch.device) -> dict[str, Any]:
    """The beginning of a record."""
    environment = asdict(devices.environment(device))
    return {"date": now(), "environment": environment, "task": task}


def section(name: str, address: str, *jobs: Job) -> dict[str, Any]:
    """A section of a record: the results, their figures as rows, and the jobs."""
    values = (value if isinstance(value, tuple) else (value,) for _, value in jobs)
    results = list(chain.from_iterable(values))
    rows = [row for result in results for row in result.rows()]
    whole = {name: list(map(asdict, results)), "figures": rows}
    return whole | recorded(address, *jobs)


def recorded(address: str, *jobs: Job) -> dict[str, Any]:
    """Arguments and results of a lesson's function, as `record` takes them."""
    address = f"core.lessons.{address}"
    return {"jobs": [dumps((address, *job)) for job in jobs]}


def record(result: dict[str, Any], folder: Path = REFERENCE) -> Path:
    """Write what was measured for the pages to a file named after the device.

    core.jobs.measurements reads it.
    """
    environment = result.get("environment") or result["figures"][0]
    name = environment["device_name"].lower()
    words = "".join(c if c.isalnum() else " " for c in name).split()
    folder.mkdir(exist_ok=True)
    path = folder / f"{'-'.join(words)}.json"
    path.write_text(joined([dumps(result["date"]), *result["jobs"]]) + "\n", "utf-8")
    return path


def merged(pieces: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """All pieces in one dict; lists and dicts of one name are joined."""
    whole: dict[str, Any] = {}
    for name, value in (item for piece in pieces for item in piece.items()):
        if name not in whole:
            whole[name] = value
        elif isinstance(value, dict):
            whole[name] = merged([whole[name], value])
        else:
            whole[name] = whole[name] + value
    return whole


def ratios(dividend: Sequence[float], divisor: Sequence[float]) -> dict[str, float]:
    """Median, least and most of the pairs' ratios."""
    pairs = [a / b for a, b in zip(dividend, divisor, strict=True)]
    return {"median": median(pairs), "least": min(pairs), "most": max(pairs)}


def main() -> None:
    parser = Parser(prog="python -m core.bench", description=__doc__)
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
        parser.error("--repeats must be 1 or more")

    devices.leave_a_core()
    task = "sprites" if datasets.status().source is None else "fashion-mnist"
    try:
        device = devices.resolve_timed(arguments.device)
        datasets.load(task)
    except ExplainedError as error:
        parser.error(str(error))
    measured = pieces(task, device, repeats, quick)
    result = {**head(task, device), **merged(piece() for piece in measured.values())}
    if arguments.record:
        print(f"recorded in {record(result)}", file=sys.stderr)
    del result["jobs"]
    if arguments.json:
        print(json.dumps(result))
    else:
        say(result)


def say(result: dict[str, Any]) -> None:
    """Print the headlines."""
    for name, way in result["epoch"].items():
        print(
            f"{name:30} {way['seconds']:7.3f} s an epoch, "
            f"{spread(way['speedup'])} times as fast as the textbook loop, "
            f"{spread(way['times_floor'])} times the arithmetic, n = {way['n']}"
        )
    for model, reached in (result["time_to_accuracy"] or {}).items():
        for pair, ratio in reached["speedups"].items():
            if ratio:
                print(
                    f"the {model.upper()} to {reached['target']:.1%}, {pair}: "
                    f"{spread(ratio)} times as soon, n = {reached['n']}"
                )
    for text in result["verdicts"]:
        print(text.replace("**", ""))


def spread(ratio: dict[str, float]) -> str:
    """6.8 (6.5 to 7.0)."""
    return "{median:.1f} ({least:.1f} to {most:.1f})".format(**ratio)


if __name__ == "__main__":
    main()
