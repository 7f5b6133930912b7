"""This machine in figures that it has earned: runs that were trained here."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import streamlit as st

from core.measure.environment import Machine
from core.store.codec import StoreError
from core.store.results import RunSummary
from core.ui import dataset, format, runs
from core.ui.kept import KeptAnswer
from core.ui.people import people
from core.ui.server import engine, store

FRESH_SECONDS = 10.0
LOOKED_AT = 3  # runs of which the fastest is taken, by what all of it took
WIDTH = 160  # of a figure, in pixels: two beside each other on a phone


@dataclass(frozen=True)
class Earned:
    """What runs on this machine have reached."""

    today: int  # training runs since midnight, of all people
    best: RunSummary | None = None  # the most accurate
    fastest: RunSummary | None = None
    samples_per_second: float = 0.0  # in the fastest one's fastest epoch


def find(machine: Machine) -> Earned:
    """Read what is kept; nothing where it can't be read."""
    try:
        kept = store().runs.find(address=runs.RUN, hidden=True)
    except StoreError:
        return Earned(0)
    midnight = datetime.now().replace(hour=0, minute=0, second=0).timestamp()
    today = sum(each.submitted >= midnight for each in kept)
    here = {each.device_name for each in machine.devices}
    task = dataset.default_task(machine)
    done = [
        each
        for each in kept
        if each.task == task and each.device_name in here and each.accuracy is not None
    ]
    if not done:
        return Earned(today)
    quickest = sorted(done, key=_seconds_of_an_epoch)[:LOOKED_AT]
    speed, fastest = max(((_speed(each), each) for each in quickest), key=_first)
    best = max(done, key=lambda each: each.accuracy or 0.0)
    return Earned(today, best, fastest, speed)


def _first(pair: tuple[Any, ...]) -> Any:
    return pair[0]


def _seconds_of_an_epoch(run: RunSummary) -> float:
    """With its evaluation: to find the fast ones, not to be told."""
    return (run.seconds or 0.0) / (run.epochs or 1)


def _speed(kept: RunSummary) -> float:
    """Samples a second in its fastest epoch, evaluation not counted."""
    found = runs.run(kept.id)
    return max((e.samples_per_second for e in found.history), default=0) if found else 0


@st.cache_resource(show_spinner=False)
def _kept() -> KeptAnswer[Earned]:
    def question() -> Earned:
        machine = engine().machine()
        return find(machine) if machine else Earned(0)

    return KeptAnswer(question, FRESH_SECONDS)


def draw(machine: Machine | None) -> None:
    """A row of figures; what there is none for is not shown."""
    if machine is None:
        return
    found = _kept()()
    shown: dict[str, tuple[str, str]] = {}
    if found.fastest and found.samples_per_second:
        speed = f"{found.samples_per_second:,.0f}"
        shown["Fastest, samples/s"] = speed, _how(found.fastest)
    if found.best and found.best.accuracy:
        shown["Best accuracy"] = f"{found.best.accuracy:.2%}", _how(found.best)
    if found.today:
        shown["Runs today"] = f"{found.today:,}", ""
    if len(people()) > 1:
        shown["People here now"] = f"{len(people()):,}", ""
    if not shown:
        return
    st.subheader("This machine so far")
    with st.container(horizontal=True):
        for label, (value, note) in shown.items():
            st.metric(label, value, border=True, width=WIDTH, help=note or None)


def _how(run: RunSummary) -> str:
    """With what a run has reached it."""
    config = run.config
    assert config is not None
    return (
        f"{format.NAMES[config.model]} on {format.NAMES[config.task]}, "
        f"{format.counted(config.epochs, 'epoch')}, batch {config.batch_size}, "
        f"{run.device_name}"
    )
