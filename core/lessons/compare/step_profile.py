"""Measure how much time each part of a training step takes, with torch.profiler.

The step is that of core.loops.train_epoch, with a profiler range around each part. An
accelerator works through a queue, so each range ends by waiting until the queue is
empty. This assigns the time to the right part, but host and device can't overlap. So on
an accelerator, a second profile waits only at each step's end, and shows the overlap.
"""

import gzip
import json
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from math import inf
from typing import Any

import torch
from torch import Tensor
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile, record_function

from core import devices
from core.config import RunConfig
from core.data import datasets
from core.lessons.compare.step_profile_result import (
    DEVICE,
    HOST,
    PARTS,
    Span,
    StepProfile,
)
from core.measure.environment import now
from core.measure.peak_memory import chrome_trace
from core.training import Training
from core.watch import UNWATCHED, Watch

STEPS = 16  # steps that count in a measurement
WARM_UP = 3  # the first steps, which don't count
TRACED = 3  # steps in the trace; few, since the job's result keeps the trace

Wait = Callable[[torch.device], None]  # waits until the device has finished its work


def measure(
    config: RunConfig, pairs: tuple[tuple[str, str], ...], watch: Watch = UNWATCHED
) -> tuple[StepProfile, ...]:
    """Profile `config` for each pair (feed, device); reports each StepProfile."""
    profiles = []
    for feed, device_name in watch.until_cancelled(pairs):
        profiles.append(take_apart(config, feed, device_name))
        watch.report(profiles[-1])
    return tuple(profiles)


def profile_it(
    step: Callable[[], object],
    warm_up: int = 3,
    steps: int = 10,
) -> str:
    """Profile a step of your own script: paste this function there.

    Returns a table of the operations that take the most of the CPU's time
    (for a GPU's time, sort by self_device_time_total), and writes trace.json,
    which https://ui.perfetto.dev opens.
    """
    for _ in range(warm_up):
        step()
    with profile() as recorded:  # of an NVIDIA, AMD, or Intel GPU, too
        for _ in range(steps):
            step()
    recorded.export_chrome_trace("trace.json")
    table = recorded.key_averages().table
    return table(sort_by="self_cpu_time_total", row_limit=10)


def take_apart(config: RunConfig, feed: str, device_name: str) -> StepProfile:
    """Time each part of STEPS training steps with this feed on this device."""
    steady = replace(config, feed=feed, device=device_name, schedule="constant")
    split = datasets.load(config.task).train
    training = Training(steady, split.first((WARM_UP + STEPS) * config.batch_size))
    device = training.device
    unprofiled = []
    start = time.perf_counter()
    for _ in training.train_epoch():
        devices.synchronize(device)
        unprofiled.append(time.perf_counter() - start)
        start = time.perf_counter()

    recorded = record(training, devices.synchronize)
    seconds: dict[str, list[float]] = {name: [] for name in ("step", *PARTS)}
    for event in recorded.events() or ():
        # On a GPU, a range has a second event: the time of its work on the GPU.
        if event.name in seconds and event.device_type == DeviceType.CPU:
            seconds[event.name].append(event.time_range.elapsed_us() / 1e6)
    spans: tuple[Span, ...] = ()
    if device.type != "cpu":
        spans = timeline(record(training, lambda _: None).events() or ())
    counted = {name: tuple(times[WARM_UP:]) for name, times in seconds.items()}
    whole_steps = counted.pop("step")
    return StepProfile(
        feed,
        counted,
        whole_steps,
        tuple(unprofiled[WARM_UP:]),
        config,
        devices.environment(device),
        now(),
        trace(recorded),
        spans,
    )


def record(training: Training, wait: Wait) -> profile:
    """Profile WARM_UP + STEPS steps; each range ends by calling `wait`."""
    activities = [ProfilerActivity.CPU]
    if training.device.type in ("cuda", "xpu"):
        activities.append(getattr(ProfilerActivity, training.device.type.upper()))
    with profile(activities=activities) as recorded:
        batch = iter(training.feed)
        for _ in range(WARM_UP + STEPS):
            step(training, batch, wait)
            devices.synchronize(training.device)
    return recorded


def timeline(events: Iterable[Any]) -> tuple[Span, ...]:
    """The spans of one step, the step with the median length."""
    ranges = [
        Span(
            HOST if event.device_type == DeviceType.CPU else DEVICE,
            event.name,
            event.time_range.start / 1e6,
            event.time_range.end / 1e6,
        )
        for event in events
        if event.name in ("step", *PARTS)
    ]
    starts = sorted(r.start for r in ranges if (r.lane, r.part) == (HOST, "step"))
    steps = [
        tuple(
            replace(span, start=span.start - start, end=span.end - start)
            for span in ranges
            if span.part in PARTS and start <= span.start < following
        )
        for start, following in pairwise([*starts, inf])
    ]
    by_length = sorted(
        steps[WARM_UP:], key=lambda spans: max(span.end for span in spans)
    )
    return by_length[len(by_length) // 2]


def step(
    training: Training, batch: Iterator[tuple[Tensor, Tensor]], wait: Wait
) -> None:
    """A step of the training loop, with a range around each part."""
    model, device = training.model, training.device
    criterion, optimizer = training.criterion, training.optimizer
    with record_function("step"):
        with record_function("load"):
            inputs, targets = next(batch)
            wait(device)
        with record_function("copy"):
            inputs = inputs.to(device)
            targets = targets.to(device)
            wait(device)
        with record_function("forward"):  # with zero_grad, which is fast
            optimizer.zero_grad()
            loss = criterion(model(inputs), targets)
            wait(device)
        with record_function("backward"):
            loss.backward()
            wait(device)
        with record_function("optimizer"):
            optimizer.step()
            wait(device)


def trace(recorded: profile) -> bytes:
    """The events of the last TRACED steps for ui.perfetto.dev, gzipped."""
    content = json.loads(chrome_trace(recorded))
    events = content["traceEvents"]
    began = sorted(
        event["ts"]
        for event in events  # a GPU's events have another category than the host's
        if event["name"] == "step" and event["cat"] == "user_annotation"
    )[-TRACED]
    content["traceEvents"] = [
        event for event in events if event["ph"] == "M" or event["ts"] >= began
    ]
    return gzip.compress(json.dumps(content).encode(), compresslevel=6)
