"""Runs as training reports them and lists show them, small and made up."""

import time
from typing import Any

from core.config import RunConfig
from core.results import Epoch, Fit, LossPoint, RunResult, Started
from core.store.store import Store
from core.store.tables import SETTINGS, Measurement, RunSummary
from tests.app import samples

RUN = "core.training:run"
CONFIG = RunConfig(task="sprites", model="cnn", epochs=2, learning_rate=3e-4)
STARTED = Started(
    environment=samples.CARD,
    parameters=87_546,
    steps=100,
    train_images=3200,
    test_images=1000,
)
LOSSES = tuple(LossPoint(step, step * 0.1, 2.3 / step) for step in range(1, 101))
HISTORY = tuple(
    Epoch(
        epoch=epoch,
        step=50 * epoch,
        loss=1 / epoch,
        train_loss=0.9 / epoch,
        test_loss=1.1 / epoch,
        seconds=5.0 * epoch,
        samples_per_second=640.0,
        train_accuracy=0.8,
        test_accuracy=0.4 * epoch,
    )
    for epoch in (1, 2)
)
RESULT = RunResult(
    config=CONFIG,
    environment=samples.CARD,
    parameters=87_546,
    history=HISTORY,
    losses=LOSSES,
    test_correct=800,
    test_total=1000,
    seconds=10.5,
    checkpoint=b"PK a state_dict" * 100,
    fit=Fit(step=100, outputs=(-1.0, 0.5), noise=0.1),
)


def finished(store: Store, run_id: str, visitor: str = "me", **more: object) -> None:
    assert queue(store, run_id, visitor, RunConfig(**{**vars(CONFIG), **more}))
    store.runs.begin(run_id)
    store.runs.started(run_id, STARTED)
    for epoch, first in zip(HISTORY, (0, 50), strict=True):
        store.runs.progress(run_id, epoch.step, LOSSES[first : first + 50])
        store.runs.epoch(run_id, epoch)
    store.runs.end(run_id, "finished", RESULT)


def queue(
    store: Store, run_id: str, visitor: str = "me", *arguments: Any, **more: Any
) -> bool:
    """Store a job that waits; returns whether that is committed."""
    job = {"address": RUN, "arguments": arguments or (CONFIG,), "lane": "train"}
    job |= {"round": 0, "submitted": time.time()} | more
    write = store.runs.enqueue(id=run_id, visitor=visitor or None, **job)
    return store.writer.wait(write)


def begin(store: Store, run_id: str, *arguments: Any) -> None:
    queue(store, run_id, "me", *arguments)
    store.runs.begin(run_id)


def newest(
    store: Store, kind: str, machine: str = "here", subject: str | None = None
) -> Measurement | None:
    ids = store.measurements.newest_ids(kind, machine, subject)
    return store.measurements.get(ids[0]) if ids else None


def summary(**columns: Any) -> RunSummary:
    """A finished run; settings may be among what is given."""
    settings = {name: columns.pop(name) for name in SETTINGS if name in columns}
    row = dict(id="", seq=0, visitor="me", address=RUN, lane="train", round=0)
    row |= dict(status="finished", submitted=0.0)
    return RunSummary(**row | columns, settings=vars(RunConfig()) | settings)
