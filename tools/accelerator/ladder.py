"""The ladder's top: how fast an epoch can be, and how soon the ANN is good with it.

How soon the app's settings are good, the record says. Beyond the rungs of the course
there is a whole epoch in one CUDA graph. All epochs are timed in turn with the
textbook's and with the arithmetic alone.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import chain, count, islice
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import DeviceType
from torch.optim import Adam
from torch.profiler import profile

from core import bench, devices, loops, models
from core.data import datasets, feeds
from core.lessons.speed import roofline, rungs
from core.lessons.speed.climb import climb
from core.lessons.speed.climb_result import DEFAULTS, Climb, Kept
from tools.accelerator.step import (
    Part,
    Results,
    Setting,
    SkipError,
    WrongError,
    work_through,
)

UNTRIED = "graphs, for which plain steps stand, and the time in kernels."
LARGE = Kept().with_change("larger_batch")
HALF = LARGE.with_change("half_precision")
TOPS = {  # in one graph, with what each has
    "batch 64": Kept(),
    "batch 256": LARGE,
    "batch 256, bfloat16": HALF,
    "batch 1024, bfloat16": Kept(batch_size=1024, learning_rate=4e-3, half=True),
}
WANTED_SPEEDUP, WANTED_SECONDS = 50.0, 0.06  # an epoch of the ANN
TARGET = bench.TARGETS["ann"]  # a test accuracy
SEEDS, REPEATS = 5, 3
PROFILED = 40  # steps, without the profiler and with it


def run(setting: Setting, results: Results) -> None:
    works = {
        "epoch": (75.0, epochs),
        "time to 88 %, graph of an epoch": (50.0, graph_to_accuracy),
        "where the time goes": (40.0, profiles),
        "the ladder of the CNN": (240.0, climb_cnn),
    }
    parts = [Part(n, most, partial(work, setting)) for n, (most, work) in works.items()]
    work_through(parts, setting, results)


def images(setting: Setting) -> datasets.Split:
    split = datasets.load(setting.task).train
    return split.first(2048) if setting.tiny else split


# An epoch


@dataclass
class GraphedEpoch:
    """All steps of an epoch, recorded once and started by one call.

    Elsewhere than on CUDA they are the same steps, made one by one.
    """

    model: nn.Module
    make: Callable[[], Tensor]  # the loss of each step, in the same tensor each time


def graphed_epoch(
    split: datasets.Split, device: torch.device, kept: Kept
) -> GraphedEpoch:
    """An ANN and its epoch, with all data on the device."""
    model = models.ANN().to(device)
    images, labels = split.images.to(device), split.labels.to(device)
    steps = len(labels) // kept.batch_size
    order = torch.randperm(steps * kept.batch_size, device=device).view(steps, -1)
    losses = torch.zeros(steps, device=device)
    criterion = nn.CrossEntropyLoss()
    optimizer = Adam(
        model.parameters(),
        lr=kept.learning_rate,
        fused=True,
        capturable=device.type == "cuda",  # it counts its steps on the device
    )

    def make_steps(count: int) -> None:
        for number in range(count):
            inputs = images.index_select(0, order[number])
            targets = labels.index_select(0, order[number])
            optimizer.zero_grad()
            with torch.autocast(device.type, torch.bfloat16, enabled=kept.half):
                loss = criterion(model(inputs), targets)
            loss.backward()
            optimizer.step()
            losses[number] = loss.detach()

    replay = recorded(make_steps, steps, device)

    def epoch() -> Tensor:
        drawn = torch.randperm(len(labels), device=device)
        order.copy_(drawn[: order.numel()].view_as(order))
        replay()
        return losses

    return GraphedEpoch(model, epoch)


def recorded(
    make_steps: Callable[[int], None], steps: int, device: torch.device
) -> Callable[[], None]:
    """A call that makes the steps again; on CUDA they are one graph."""
    if device.type != "cuda":
        return partial(make_steps, steps)
    # First, steps beside: what they set up must not be recorded.
    beside = torch.cuda.Stream()
    beside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(beside):
        make_steps(min(3, steps))
    torch.cuda.current_stream().wait_stream(beside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        make_steps(steps)

    def replay() -> None:
        _ = make_steps  # the graph knows only addresses: this keeps what is there
        graph.replay()

    return replay


def epochs(setting: Setting) -> dict[str, Any]:
    """Textbook, a graph of a step, graphs of the epoch and the floor, in turn.

    Wrong, on CUDA, where none is as fast as it has to be.
    """
    split, device = images(setting), setting.device
    works: dict[str, Callable[[], object]] = {
        "textbook, batch 64": bench.epoch_of("textbook", split, device, Kept()),
        "arithmetic floor": bench.arithmetic(len(split), device),
    }
    if device.type == "cuda":
        for name, kept in TOPS.items():
            epoch = bench.epoch_of("graphed", split, device, kept)
            works[f"graph of a step, {name}"] = epoch
    for name, kept in TOPS.items():
        made = graphed_epoch(split, device, kept)
        works[f"graph of the epoch, {name}"] = made.make
    limit = roofline.measure(setting.task, "ann", device)
    found = bench.side_by_side(works, device, 1 if setting.tiny else REPEATS)
    for name, each in found.items():
        kept = TOPS.get(name.partition(", ")[2], Kept())
        dtype = "bfloat16" if kept.half else "float32"
        steps = len(split) // kept.batch_size
        each["times_limit"] = each["seconds"] / limit.seconds(len(split), steps, dtype)
    told = {"limit": limit, "epochs": found}
    if device.type == "cuda" and not setting.tiny and (said := too_slow(found)):
        raise WrongError(said, told)
    return told


def too_slow(found: dict[str, Any]) -> str:
    """How fast the fastest graph is, if that is not what it has to be."""
    graphs = {name: each for name, each in found.items() if "graph" in name}
    if not graphs:
        return "No epoch could be recorded as a graph; the log says why."
    best = min(graphs, key=lambda name: graphs[name]["seconds"])
    seconds, speedup = graphs[best]["seconds"], graphs[best]["speedup"]["median"]
    if seconds < WANTED_SECONDS and speedup >= WANTED_SPEEDUP:
        return ""
    return f"{best}: {1000 * seconds:.0f} ms, {speedup:.0f} times as fast as the loop."


# Until it is good


def graph_to_accuracy(setting: Setting) -> dict[str, Any]:
    """Seconds until the ANN is right that often, with each graph of an epoch.

    To set up and to record is told apart: whoever trains once pays for that too.
    """
    split, device = images(setting), setting.device
    test = feeds.in_order(datasets.load(setting.task).test, device)
    found = {}
    for name, kept in list(TOPS.items())[: 1 if setting.tiny else None]:
        runs = []
        for seed in seeds(setting):
            torch.manual_seed(seed)
            began = time.perf_counter()
            made = graphed_epoch(split, device, kept)
            devices.synchronize(device)
            ready = time.perf_counter()
            accuracy, epochs = 0.0, 0
            while accuracy < TARGET and epochs < most_epochs(setting):
                made.model.train()
                made.make()
                epochs += 1
                outputs, targets = loops.predict(made.model, test, device)
                accuracy = (outputs.argmax(dim=1) == targets).float().mean().item()
            seconds = time.perf_counter() - ready
            run = dict(seed=seed, seconds=seconds, accuracy=accuracy, epochs=epochs)
            runs.append(run | {"set_up_seconds": ready - began})
        found[name] = with_spread(runs)
    return found


def seeds(setting: Setting) -> range:
    return range(1 if setting.tiny else SEEDS)


def most_epochs(setting: Setting) -> int:
    return 2 if setting.tiny else bench.MOST_EPOCHS["ann"]


def with_spread(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The runs, how many of them got there, and when."""
    times = [run["seconds"] for run in runs if run["accuracy"] >= TARGET]
    there: dict[str, Any] = {"n": len(times)}
    if times:
        there |= dict(median=median(times), least=min(times), most=max(times))
    return {"of": len(runs), "there": there, "runs": runs}


# What the rest of the time is


def profiles(setting: Setting) -> dict[str, Any]:
    """For steps of some rungs: how long they take, and how long kernels run in them."""
    chosen = {
        "fused, batch 64": ("fused", Kept()),
        "fused, batch 256": ("larger_batch", LARGE),
    }
    if setting.device.type == "cuda":
        chosen |= {
            "graph of a step, batch 64": ("graphed", Kept()),
            "graph of a step, batch 256": ("graphed", LARGE),
        }
    return {name: profiled(setting, *each) for name, each in chosen.items()}


def profiled(setting: Setting, rung: str, kept: Kept) -> dict[str, Any]:
    """A step without and with the profiler; on a CPU operations stand for kernels."""
    device, model = setting.device, models.ANN().to(setting.device)
    epoch = getattr(rungs, rung)(images(setting), model, device, kept)
    steps = chain.from_iterable(epoch() for _ in count())

    def timed() -> float:
        """Seconds of a step."""
        began = time.perf_counter()
        bench.run_through(islice(steps, PROFILED))
        devices.synchronize(device)
        return (time.perf_counter() - began) / PROFILED

    timed()  # warm-up
    alone = timed()
    with profile() as seen:
        watched = timed()
    if device.type == "cpu":
        kernels = [event.self_cpu_time_total for event in seen.events() or ()]
    else:
        kernels = [
            event.time_range.elapsed_us()
            for event in seen.events() or ()
            if event.device_type != DeviceType.CPU and not event.is_user_annotation
        ]
    which = "cpu" if device.type == "cpu" else "device"
    table = seen.key_averages().table(f"self_{which}_time_total", row_limit=12)
    return {
        "seconds": alone,
        "seconds_watched": watched,
        "kernels": len(kernels) / PROFILED,
        "kernel_seconds": sum(kernels) / 1e6 / PROFILED,
        "most": table.splitlines(),
    }


def climb_cnn(setting: Setting) -> Any:
    """All rungs with the CNN; the ANN's are in the record."""
    if setting.tiny:
        raise SkipError("The record climbs with the ANN; two would be long.")
    return climb(Climb(setting.task, "cnn", str(setting.device), *DEFAULTS["cnn"]))
