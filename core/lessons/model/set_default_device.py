"""What a default device changes, and what it doesn't, tried on real tensors.

Run `compare` in a process of its own (core.jobs.child_process). A default device
belongs to a thread, and a worker's thread also runs later jobs, which must not
inherit it.
"""

import io
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, default_collate

from core import devices
from core.measure import timing
from to_device.names import SIMULATED

CALLS, ROUNDS = 500, 20  # calls that are timed together, and how often they are timed
array = np.ones(3, dtype=np.float32)
existing = torch.ones(3)  # a CPU tensor, made before a default device is set
saved = io.BytesIO()
torch.save(existing, saved)
expressions: dict[str, Callable[[], Any]] = {
    "torch.zeros(3)": lambda: torch.zeros(3),
    "torch.tensor([1.0, 2.0])": lambda: torch.tensor([1.0, 2.0]),
    "torch.as_tensor(array)": lambda: torch.as_tensor(array),
    "nn.Linear(3, 1).weight": lambda: nn.Linear(3, 1).weight,
    "default_collate([0, 1])": lambda: default_collate([0, 1]),
    "torch.from_numpy(array)": lambda: torch.from_numpy(array),
    "existing + 1": lambda: existing + 1,
    "torch.zeros_like(existing)": lambda: torch.zeros_like(existing),
    "existing.new_zeros(3)": lambda: existing.new_zeros(3),
    "torch.load(saved)": lambda: torch.load(saved),
    'torch.zeros(3, device="cpu")': lambda: torch.zeros(3, device="cpu"),
}


def places() -> dict[str, str]:
    """The type of the device on which each expression makes its tensor."""
    types = {}
    for text, make in expressions.items():
        saved.seek(0)
        types[text] = make().device.type
    return types


def tried(block: AbstractContextManager[object]) -> dict[str, Any]:
    """Where tensors are made inside `with block`, in another thread, and afterwards."""
    with block, ThreadPoolExecutor(1) as another:
        types = places()
        thread = another.submit(torch.zeros, 3).result().device.type
    return {"made": types, "thread": thread, "after": torch.zeros(3).device.type}


def shuffle(generator: torch.Generator | None = None) -> str:
    """The error of a shuffled DataLoader, or "" if it works.

    With `generator=None`, the loader draws the order with a generator on the CPU, which
    fails if the default device isn't the CPU.
    """
    data: Any = existing
    try:
        next(iter(DataLoader(data, shuffle=True, generator=generator)))
    except RuntimeError as error:
        return str(error).partition("\n")[0]
    return ""


def seconds_a_call() -> list[float]:
    """Least seconds of a small addition: without a default device, and with one.

    Here, the default device is the CPU: all default devices cost the same time.
    """

    def add() -> None:
        for _ in range(CALLS):
            existing + existing

    seconds: dict[str | None, list[float]] = {None: [], "cpu": []}
    for _ in range(ROUNDS):  # alternate, so that other load slows both equally
        for default, readings in seconds.items():
            torch.set_default_device(default)
            (total,) = timing.measure(add, existing.device, repeats=1)
            readings.append(total / CALLS)
    return list(map(min, seconds.values()))


def compare() -> dict[str, Any]:
    """Try a default device, set by a `with` block, then by set_default_device.

    The default device is the accelerator, or else the simulated accelerator. Raises
    ExplainedError if there is neither. In the result, "block" and "setting" are what
    `tried` returns, "shuffle" and "generator" are errors of `shuffle` without and with
    a generator on that device, and "cost" is what `seconds_a_call` returns.
    """
    device = (devices.accelerator() or devices.resolve(SIMULATED)).type
    block = tried(torch.device(device))
    try:
        torch.set_default_device(device)
        return {
            "device": device,
            "block": block,
            "setting": tried(nullcontext()),
            "shuffle": shuffle(),
            "generator": shuffle(torch.Generator(device)),
            "cost": seconds_a_call(),
        }
    finally:
        torch.set_default_device(None)
