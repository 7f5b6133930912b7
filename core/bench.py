"""The benchmark: which choices make training faster, and by what ratios.

    python -m core.bench --json            # about half an hour on a CPU
    python -m core.bench --json --quick    # under a minute, but less precise

The two times in a ratio are measured in turns, A B A B, so that other work on
the machine slows down both.
"""

import json
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import chain, product
from pathlib import Path
from pkgutil import resolve_name
from statistics import mean, median
from typing import Any

import torch

from core import devices, models, training
from core.config import RunConfig
from core.data import datasets
from core.folders import ROOT
from core.lessons.compare.candidates import candidates, default_pair, tell_apart
from core.lessons.compare.race_result import RACE_STEPS
from core.lessons.compare.race_verdict import verdict
from core.lessons.model import transfers
from core.lessons.speed import recipe, rungs
from core.lessons.speed.climb import why
from core.lessons.speed.climb_result import DEFAULTS, Climb, Kept
from core.lessons.speed.climb_result import verdict as climb_verdict
from core.lessons.speed.loader_result import loader_plan
from core.lessons.speed.roofline import flops_per_image
from core.lessons.speed.time_to_accuracy import tested
from core.lessons.speed.time_to_accuracy_result import TARGET, Tested
from core.measure import timing
from core.measure.environment import now
from core.measure.rows import pick
from core.measure.speedup import FEWEST_REPEATS
from core.store import addresses
from core.store.codec import dumps, joined
from core.watch import UNWATCHED
from to_device.errors import ExplainedError, Parser, end_with_pipe

REFERENCE = Path(__file__).with_name("reference")
MAP_SECONDS, QUICK_MAP_SECONDS = 120.0, 8.0  # time for the crossover map
LAB_SECONDS, QUICK_LAB_SECONDS = 120.0, 3.0  # time for the loader lab
QUICK_IMAGES = 6000  # images in an epoch with --quick
TARGETS = {"ann": 0.88, "cnn": TARGET}  # the test accuracies to reach
SHORTEST = {"ann": recipe.ANN, "cnn": replace(recipe.CNN, epochs=4)}
MOST_EPOCHS = {"ann": 30, "cnn": 12}  # the textbook loop's limit
# Rows of the matrices that `arithmetic` multiplies. One product of much larger matrices
# would have more operations than a whole epoch.
MATRIX_SIZE = 1024
SEEDS = 3  # a time to accuracy is measured once with each seed
WAYS = ("textbook", "default", "fast", "recipe")
# Scripts among the dry run's tests that also run on a CPU. They are so short that a dry
# run leaves none of their loops early, so it makes all the steps of the script alone.
SCRIPTS = ROOT / "tests/toolkit/dryrun/scripts"
DRY_RUNS = (
    *("averaged_model", "checkpoint", "cpu_indices", "endless_stream", "gan"),
    *("lstm_detached_state", "metrics_on_device", "moves_twice", "oom_retry"),
    "scalars_on_cpu",
)
# A dry run should take at most so many times the script's own time, and so much more.
MOST_TIMES_OWN, MOST_SECONDS_MORE = 3.0, 2.0
SPEED_LABS = ("loader", "memory", "vectorize", "copies")
QUICK: dict[str, dict[str, Any]] = {  # arguments for short measurements
    "transfers": {"sizes": transfers.SIZES[:-2]},
    "memory": {"repeats": 2},
    "vectorize": {"repeats": {1: 20, 1_000: 5, 100_000: 2}},
}
VERDICTS: dict[str, Callable[[Any], str]] = {
    "races": verdict,
    "climbs": lambda climbed: f"The ladder. {climb_verdict(climbed)}",
}


def epoch_of(
    rung: str, split: datasets.Split, device: torch.device, changes: Kept
) -> Callable[[], object]:
    """A function that trains the ANN for an epoch, with a loop of the lesson Speed.

    `rung` is the loop's name in core.lessons.speed.rungs.
    """
    epoch = getattr(rungs, rung)(split, models.ANN().to(device), device, changes)
    return lambda: run_through(epoch())


def run_through(steps: Iterable[object]) -> None:
    deque(steps, maxlen=0)


def arithmetic(images: int, device: torch.device) -> Callable[[], None]:
    """A function that only multiplies large matrices.

    It does about as many operations as an epoch of the ANN on this number of images.
    """
    products = max(1, round(images * flops_per_image("ann") / (2 * MATRIX_SIZE**3)))
    matrix = torch.rand(MATRIX_SIZE, MATRIX_SIZE, device=device)

    def work() -> None:
        for _ in range(products):
            matrix @ matrix

    return work


def compare_epochs(
    split: datasets.Split, device: torch.device, repeats: int
) -> dict[str, Any]:
    """Time an epoch of the ANN in several training loops, and its arithmetic alone."""
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
        for changes in (Kept(), large):
            epoch = epoch_of("graphed", split, device, changes)
            works[f"CUDA graph, batch {changes.batch_size}"] = epoch
    return side_by_side(works, device, repeats)


def side_by_side(
    works: dict[str, Callable[[], object]], device: torch.device, repeats: int
) -> dict[str, Any]:
    """Time the functions in `works` in turns, and return figures for each name.

    A function that fails is left out. The figure "speedup" compares with the textbook
    loop, and "times_floor" with the arithmetic alone; `works` must contain both.
    """
    working = {}
    for name, work in works.items():
        try:
            work()  # the warm-up, which also compiles some of the loops
            working[name] = work
        except Exception as error:
            print(f"{name} was left out: {why(error)}", file=sys.stderr)
    timings = timing.measure_side_by_side(list(working.values()), device, repeats, 0)
    durations = dict(zip(working, timings, strict=True))
    textbook, floor = durations["textbook, batch 64"], durations["arithmetic floor"]
    return {
        name: {
            "seconds": median(seconds),
            "least_seconds": min(seconds),
            "most_seconds": max(seconds),
            "n": len(seconds),
            "speedup": ratios(textbook, seconds),
            "times_floor": ratios(seconds, floor),
        }
        for name, seconds in durations.items()
    }


def trained(way: str, model: str, device: torch.device, seed: int) -> Tested:
    """Train on Fashion-MNIST in one of WAYS.

    "textbook" ends once it reaches the target accuracy. The seconds of a
    Tested include one test of the model. But "default" and "fast" use the
    app's settings, and their seconds include a test after each epoch.
    """
    if way in ("default", "fast"):
        config = RunConfig.with_recipe(
            fast=way == "fast", model=model, device=device.type, seed=seed
        )
        began = time.perf_counter()
        accuracy = training.run(config).test_accuracy
        assert accuracy is not None
        return Tested(way, config.epochs, time.perf_counter() - began, accuracy)
    plan, target = SHORTEST[model], TARGETS[model]
    if way == "textbook":
        plan = recipe.Recipe(model, MOST_EPOCHS[model], half=False, mirror=False)
    data = datasets.load("fashion-mnist")
    for test in tested({way: plan}, data, device, plan.epochs, seed, UNWATCHED):
        if way == "textbook" and test.accuracy >= target:
            break
    return test


def time_to_accuracy(
    model: str, device: torch.device, seeds: Sequence[int]
) -> dict[str, Any]:
    """Train the model in each of WAYS with each seed, and compare the seconds.

    The speedups are over "textbook" and over "default". A speedup is None if one of its
    two ways misses the target accuracy on average.
    """
    target = TARGETS[model]
    trained("recipe", "ann", device, seeds[0])  # warm-up
    runs: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}
    for seed, way in product(seeds, WAYS):
        test = trained(way, model, device, seed)
        figures = pick(test, "seconds epochs=epoch test_accuracy=accuracy")
        runs[way].append({"seed": seed, **figures})
    seconds = {way: [run["seconds"] for run in runs[way]] for way in WAYS}
    misses = {
        way for way in WAYS if mean(run["test_accuracy"] for run in runs[way]) < target
    }
    speedups = {
        f"{way} over {base}": None
        if misses & {way, base}
        else ratios(seconds[base], seconds[way])
        for base, way in product(WAYS[:2], WAYS[1:])
        if way != base
    }
    return {"target": target, "n": len(seeds), **runs, "speedups": speedups}


def dry_runs(names: Sequence[str], repeats: int) -> dict[str, Any]:
    """Time the dry run of each script against the script alone, in new processes.

    Without the scripts, as in an installed package, the result is None.
    """
    if not SCRIPTS.exists():
        return {"dry_runs": None}
    cpu, measured = torch.device("cpu"), {}
    for name in names:
        script = str(SCRIPTS / f"right_{name}.py")
        dry = partial(run_python, "-m", "to_device", "dryrun", script)
        works = [dry, partial(run_python, script)]
        seconds, own = timing.measure_side_by_side(works, cpu, repeats, 0)
        most = MOST_TIMES_OWN * median(own) + MOST_SECONDS_MORE
        measured[name] = {
            "seconds": median(seconds),
            "own_seconds": median(own),
            "times_own": ratios(seconds, own),
            "is_within": median(seconds) <= most,
            "n": repeats,
        }
    return {"dry_runs": measured}


def run_python(*arguments: str) -> None:
    """Run Python to its end. CalledProcessError if it fails."""
    command = [sys.executable, *arguments]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True)


def pieces(
    task: str, device: torch.device, repeats: int, quick: bool
) -> dict[str, Callable[[], dict[str, Any]]]:
    """Functions that each measure one part of the result, keyed by the part's name."""
    machine, name = devices.describe(), str(device)
    racers = [
        candidate
        for candidate in candidates(machine)
        if device.type != "cpu" or candidate.device == "cpu"
    ]
    pair = tell_apart(*default_pair(racers))
    configs = [
        RunConfig.with_recipe(task=task, model=model, epochs=1)
        for model in (["ann"] if quick else RACE_STEPS)
    ]
    trials = max(repeats, FEWEST_REPEATS)
    feeds = tuple((feed, name) for feed in ("dataloader", "memory", "device"))
    length = (1, QUICK_IMAGES) if quick else DEFAULTS["ann"]
    map_seconds = QUICK_MAP_SECONDS if quick else MAP_SECONDS
    lab_seconds = QUICK_LAB_SECONDS if quick else LAB_SECONDS
    calls: dict[str, tuple[str, list[tuple]]] = {
        "races": (
            "compare.race:race",
            [(c, pair, RACE_STEPS[c.model], trials) for c in configs],
        ),
        "labs": ("compare.timing_pitfalls:measure", [(name,)]),
        "breakdowns": ("compare.step_profile:measure", [(c, feeds) for c in configs]),
        "crossovers": ("compare.crossover:measure", [(pair, map_seconds)]),
        "climbs": ("speed.climb:climb", [(Climb(task, "ann", name, *length), ())]),
        "transfers": ("model.transfers:measure", [(name,)]),
        "loader": (
            "speed.loader:measure",
            [(task, name, loader_plan(machine), lab_seconds)],
        ),
        "memory": ("speed.memory:measure", [(name,)]),
        "vectorize": ("speed.vectorize:measure", [(name,)]),
        "copies": ("speed.copies:measure", [(name,)]),
    }

    def epoch() -> dict[str, Any]:
        split = datasets.load(task).train
        split = split.first(QUICK_IMAGES) if quick else split
        ways = compare_epochs(split, device, repeats)
        facts = {**asdict(devices.environment(device)), "date": now()}
        return {"epoch": {name: figures | facts for name, figures in ways.items()}}

    def times_to_accuracy() -> dict[str, Any]:
        if quick or task != "fashion-mnist":
            return {"time_to_accuracy": None}
        seeds = range(min(SEEDS, repeats))
        times = {model: time_to_accuracy(model, device, seeds) for model in TARGETS}
        return {"time_to_accuracy": times}

    options = QUICK if quick else {}
    lessons = {
        name: partial(section, name, *call, options.get(name, {}))
        for name, call in calls.items()
    }
    if device.type == "cpu":  # a machine with a GPU needs no dry runs
        scripts = DRY_RUNS[:2] if quick else DRY_RUNS
        lessons["dry_runs"] = partial(dry_runs, scripts, repeats)
    return {"epoch": epoch, "time_to_accuracy": times_to_accuracy, **lessons}


def section(
    name: str, address: str, calls: Sequence[tuple], options: dict[str, Any]
) -> dict[str, Any]:
    """Call a lesson's function once for each tuple of arguments in `calls`.

    Returns a part of the benchmark's result. Its "jobs" are texts for `record`: each
    has a call and the call's result, in the form in which the database stores values.
    """
    address = f"core.lessons.{address}"
    results: list[Any] = []
    jobs: list[str] = []
    for call in calls:
        result = resolve_name(address)(*call, **options)
        if isinstance(result, tuple):  # step profiles: drop their large traces
            result = tuple(replace(profile, trace=None) for profile in result)
        results += result if isinstance(result, tuple) else (result,)
        jobs.append(dumps((address, call, result)))
    plain = list(map(asdict, results))
    if name == "transfers":
        return {name: plain[0]["measured"], "jobs": jobs}
    figures = [row for result in results for row in result.rows()]
    if name in SPEED_LABS:
        return {"speed_labs": {name: plain[0], "figures": figures}, "jobs": jobs}
    for trial in chain.from_iterable(race.get("trials", ()) for race in plain):
        trial["losses"] = ()  # left out: they are many, and say nothing about speed
    part = {name: plain, "figures": figures, "jobs": jobs}
    if verdict := VERDICTS.get(name):
        part["verdicts"] = list(map(verdict, results))
    return part


def head(task: str, device: torch.device) -> dict[str, Any]:
    environment = asdict(devices.environment(device))
    return {"date": now(), "environment": environment, "task": task}


def record(result: dict[str, Any], folder: Path = REFERENCE) -> Path:
    """Write a file that core.jobs.measurements reads, and return its path."""
    environment = result.get("environment") or result["figures"][0]
    name = environment["device_name"].lower()
    words = "".join(c if c.isalnum() else " " for c in name).split()
    folder.mkdir(exist_ok=True)
    path = folder / f"{'-'.join(words)}.json"
    text = joined([dumps(result["date"]), *result["jobs"]])
    path.write_text(addresses.with_addresses(text) + "\n", "utf-8")
    return path


def merged(pieces: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Join the dicts. If two have a list or a dict under one name, join these, too."""
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
    pairs = [a / b for a, b in zip(dividend, divisor, strict=True)]
    return {"median": median(pairs), "least": min(pairs), "most": max(pairs)}


def main(
    arguments: Sequence[str] | None = None, prog: str = "python -m core.bench"
) -> None:
    parser = Parser(prog, description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--record", action="store_true", help="save the result in core/reference"
    )
    parser.add_argument("--quick", action="store_true", help="measure less")
    parser.add_argument("--repeats", type=int, help="default: 5, or 1 with --quick")
    parser.add_argument("--device", default="auto", help="default: auto")
    options = parser.parse_args(arguments)
    quick = options.quick
    repeats = (1 if quick else 5) if options.repeats is None else options.repeats
    if repeats < 1:
        parser.error("--repeats must be 1 or more")

    devices.leave_a_core()
    task = "sprites" if datasets.status().source is None else "fashion-mnist"
    try:
        device = devices.resolve_timed(options.device)
        datasets.load(task)
    except ExplainedError as error:
        parser.error(str(error))
    parts = pieces(task, device, repeats, quick).values()
    result = {**head(task, device), **merged(piece() for piece in parts)}
    if options.record:
        print(f"recorded in {record(result)}", file=sys.stderr)
    del result["jobs"]
    end_with_pipe()
    if options.json:
        print(json.dumps(result))
    else:
        say(result)


def say(result: dict[str, Any]) -> None:
    for name, way in result["epoch"].items():
        print(
            f"{name:30} {way['seconds']:7.3f} s per epoch, "
            f"{spread(way['speedup'])} times as fast as the textbook loop, "
            f"{spread(way['times_floor'])} times the arithmetic alone, n = {way['n']}"
        )
    for model, times in (result["time_to_accuracy"] or {}).items():
        for pair, ratio in times["speedups"].items():
            if ratio:
                print(
                    f"the {model.upper()} to {times['target']:.1%}, {pair}: "
                    f"{spread(ratio)} times as fast, n = {times['n']}"
                )
    for name, run in (result.get("dry_runs") or {}).items():
        print(
            f"the dry run of {name}: {spread(run['times_own'])} times the script "
            f"alone, which takes {run['own_seconds']:.1f} s, n = {run['n']}"
        )
    for text in result["verdicts"]:
        print(text.replace("**", ""))


def spread(ratio: dict[str, float]) -> str:
    """Text such as "6.8 (6.5 to 7.0)"."""
    return "{median:.1f} ({least:.1f} to {most:.1f})".format(**ratio)


if __name__ == "__main__":
    main()
