"""Run a mistake's halves, each in a separate process, and describe how they ended."""

import multiprocessing
import os
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook
from torch.utils._python_dispatch import TorchDispatchMode

from core import devices
from core.jobs import child_process
from core.jobs.child_process import hide_devices
from core.jobs.job import resolve
from core.lessons.mistakes.catalogue import (
    BY_SLUG,
    MISTAKES,
    NO_GPU,
    OTHER,
    TIMED,
    Failure,
    Mistake,
    MistakeRun,
    Outcome,
)
from core.lessons.mistakes.examples import fixtures
from core.watch import UNWATCHED, Watch
from to_device.errors import ExplainedError
from to_device.names import SIMULATED
from to_device.sim import memory

SECONDS = 20.0  # time limit of one half; the slowest half takes 2 on an idle core
STYLE = re.compile(r"\x1b\[[0-9;]*m")  # a terminal's codes for bold and colors
# The folders of the app and of the libraries, whose paths are left out of tracebacks.
ROOTS = (Path(__file__).parents[3], Path(torch.__file__).parents[1])


def run(slug: str, watch: Watch = UNWATCHED) -> MistakeRun:
    mistake = BY_SLUG[slug]
    if not possible(mistake):
        raise ExplainedError("You can make this mistake only on Linux.")
    # The first child process starts slowly. This must not use up a half's time limit.
    child_process.warm_up()
    device = place(mistake.broken_on)
    broken, fixed = (
        half(which, mistake, device, watch) for which in ("broken", "fixed")
    )
    environment = devices.environment(torch.device(device))
    return MistakeRun(slug, broken, (fixed,), replace(environment, threads=1))


def failures(watch: Watch = UNWATCHED) -> dict[str, Failure | None]:
    """Run each loud mistake; return and report its Failure, or None, for each slug."""
    child_process.warm_up()
    failures = {}
    for mistake in filter(possible, MISTAKES):
        if mistake.loud:
            outcome = half("broken", mistake, place(mistake.broken_on), watch)
            failures[mistake.slug] = outcome.failure
            watch.report((mistake.slug, outcome.failure))
    return failures


def possible(mistake: Mistake) -> bool:
    return sys.platform == "linux" or not mistake.linux_only


def place(where: str) -> str:
    """The type of this machine's device for `where`: OTHER, TIMED, HOST, or NO_GPU."""
    device = {OTHER: devices.other_than_cpu(), TIMED: devices.accelerator()}.get(where)
    return "cpu" if device is None else device.type


def half(
    which: str, mistake: Mistake, device: str, watch: Watch = UNWATCHED
) -> Outcome:
    """Run one half in a child process. If the process dies, return how."""
    try:
        return child_process.call(
            "core.lessons.mistakes.runner:attempt",
            which,
            mistake.slug,
            device,
            seconds=SECONDS,
            memory_bytes=mistake.memory_bytes if device == "cpu" else None,
            watch=watch,
        )
    except child_process.ChildDiedError as error:
        return Outcome(device, died=str(error))


def attempt(which: str, slug: str, device_name: str) -> Outcome:
    """Call the "broken" or "fixed" half in this child process."""
    mistake = BY_SLUG[slug]
    if mistake.broken_on == NO_GPU:
        hide_devices()
    device = devices.resolve(device_name)
    if mistake.memory_bytes is not None and device.type != "cpu":
        limit_device_memory(device, mistake.memory_bytes)
    function = resolve(mistake.address(which))
    counts_waits = mistake.figure is not None and mistake.figure.counts_waits
    waits, losses, waits_so_far = Waits(), list[torch.Tensor](), list[int]()

    def note(module: nn.Module, _inputs: object, loss: torch.Tensor) -> None:
        if isinstance(module, nn.modules.loss._Loss):
            losses.append(loss.detach())
            waits_so_far.append(waits.count)
            fixtures.memory(device)

    if not mistake.loud:  # a loud mistake's traceback would show the hook
        register_module_forward_hook(note)
    # As a daemon, this process couldn't start a DataLoader's workers.
    multiprocessing.current_process().daemon = False
    torch.manual_seed(0)
    try:
        with waits if counts_waits else nullcontext():
            value = function(device)
        devices.synchronize(device)
    except Exception as error:
        return Outcome(device_name, failure=describe(error, function, device))
    if isinstance(value, torch.Tensor):
        value = value.detach()
        device = value.device
    if mistake.figure is None:
        return Outcome(device.type, repr(value))
    figure = float(waits.count if counts_waits else value)
    curves: dict[str, Sequence[float | torch.Tensor]]
    curves = {"loss": losses, "waits": waits_so_far}
    curves |= {"share": fixtures.shares, "memory": fixtures.readings}
    curve = tuple(map(float, curves.get(mistake.figure.curve, ())))
    return Outcome(device.type, repr(value), figure, curve)


class Waits(TorchDispatchMode):
    """Counts how often Python reads a tensor's value, as `item`, `int` and `if` do."""

    count = 0

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        self.count += operation is torch.ops.aten._local_scalar_dense.default
        return operation(*args, **(kwargs or {}))


def describe(error: Exception, function: Callable, device: torch.device) -> Failure:
    """The exception as the page shows it, and the line of `function` that raised it."""
    # Leave out the first frame, which is that of `attempt`.
    frames = error.__traceback__.tb_next if error.__traceback__ else None
    text = "".join(traceback.format_exception(type(error), error, frames))
    for root in ROOTS:
        text = text.replace(f"{root}{os.sep}", "")
    file = function.__code__.co_filename  # each half has a file name of its own
    lines = [
        line
        for frame, line in traceback.walk_tb(error.__traceback__)
        if frame.f_code.co_filename == file
    ]
    return Failure(
        type(error).__name__,
        STYLE.sub("", str(error)),
        lines[-1] if lines else None,
        STYLE.sub("", text),
        not devices.usable(device),
    )


def limit_device_memory(device: torch.device, memory_bytes: int) -> None:
    if device.type == SIMULATED:
        memory.capacity = memory_bytes
    module = getattr(torch, device.type)
    total = devices.memory(device)[1]
    if total and hasattr(module, "set_per_process_memory_fraction"):
        module.set_per_process_memory_fraction(min(1.0, memory_bytes / total))
