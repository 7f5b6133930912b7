import os

import pytest
import torch

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
