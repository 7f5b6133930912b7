import os
from dataclasses import replace

import pytest
import torch

from core import devices
from core.lessons.device import parallel
from core.lessons.device.parallel_result import (
    AT_ONCE,
    IN_TURN,
    SHORT_VECTORS,
    Multiplied,
)
from core.watch import Watch


def test_the_loop_and_torch_multiply_the_same() -> None:
    a, b = torch.rand(5, 4), torch.rand(4, 3)
    product = parallel.python_loop(a.tolist(), b.tolist())
    assert torch.allclose(torch.tensor(product), parallel.at_once(a, b))


def test_short_vectors_are_timed_like_the_others(monkeypatch) -> None:
    monkeypatch.setenv("MKL_CBWR", "")
    settings = []
    monkeypatch.setattr(
        parallel, "at_once", lambda *_: settings.append(os.environ["MKL_CBWR"])
    )
    assert len(parallel.with_short_vectors(16)) == parallel.REPEATS
    assert set(settings) == {"COMPATIBLE"}


def test_every_way_is_measured_and_reported(monkeypatch) -> None:
    monkeypatch.setattr(
        parallel.child_process, "call", lambda _address, _side: [1.0, 2.0]
    )
    events: list[object] = []
    threads = torch.get_num_threads()
    done = parallel.measure("cpu", Watch(events.append, lambda: False), size=16)
    assert tuple(events) == done.found
    assert all(isinstance(event, Multiplied) for event in events)
    assert {"Python loop", "One core"} <= done.at(AT_ONCE).keys()
    short = done.at(AT_ONCE).get(SHORT_VECTORS, 1.5 / 16**3)
    assert short == pytest.approx(1.5 / 16**3)  # what the other process took
    assert done.at(IN_TURN).keys() == {"Python loop", "One core"}
    assert torch.get_num_threads() == threads
    over = done.speedup("Python loop", "One core")
    assert over.n == len(done.found[0].seconds)
    assert replace(done, took_turns=False).speedup("Python loop", "One core").n == 0


def test_a_slowdown_affects_all_ways_since_they_take_turns(monkeypatch) -> None:
    calls: list[int] = []
    monkeypatch.setattr(parallel, "python_loop", lambda *_: calls.append(0))
    monkeypatch.setattr(
        parallel, "at_once", lambda *_: calls.append(torch.get_num_threads())
    )
    monkeypatch.setattr(parallel.child_process, "call", lambda *_: [1.0])
    parallel.measure("cpu", size=16)
    turns = parallel.WARM_UP + parallel.REPEATS
    assert calls == calls[: len(calls) // turns] * turns
    assert len({*calls}) == min(3, 1 + devices.usable_cores())
