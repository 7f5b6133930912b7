"""What this machine has earned by runs that were trained, and by what was measured."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import Any

import streamlit as st

from core.compare.results import Race
from core.measure.environment import Machine
from core.move.results import Transfers
from core.results import training_speed
from core.scale.results import Cost
from core.speed.headline import Climbed
from core.store.codec import StoreError
from core.store.results import RunSummary
from core.ui import dataset, figures, format, guess, measured, runs
from core.ui.compare import race
from core.ui.move import transfers
from core.ui.people import people
from core.ui.scale import cost
from core.ui.server import store
from core.ui.speed import ladder, rungs

FRESH_SECONDS = 10.0
LOOKED_AT = 3  # runs of which the fastest is taken, by what all of each took


@dataclass(frozen=True)
class Earned:
    """What runs on this machine have reached."""

    today: int = 0  # training runs since midnight, of all people
    best: RunSummary | None = None  # the most accurate
    fastest: RunSummary | None = None
    samples_per_second: float = 0.0  # of that one, over all its epochs


@st.cache_data(ttl=FRESH_SECONDS, max_entries=4, show_spinner=False)
def by_runs(machine: Machine) -> Earned:
    """Read from what is kept; nothing where it can't be read."""
    try:
        kept = store().runs.find(address=runs.RUN, hidden=True)
    except StoreError:
        return Earned()
    midnight = datetime.now().replace(hour=0, minute=0, second=0, microsecond=0)
    today = sum(each.submitted >= midnight.timestamp() for each in kept)
    here = {each.device_name for each in machine.devices}
    task = dataset.default_task(machine)
    done = [
        (each.accuracy, each)
        for each in kept
        if each.task == task and each.device_name in here and each.accuracy is not None
    ]
    if not done:
        return Earned(today)
    _, best = max(done, key=lambda pair: pair[0])
    quickest = sorted((each for _, each in done), key=_seconds_of_an_epoch)
    speeds = [(_speed(each), each) for each in quickest[:LOOKED_AT]]
    speed, fastest = max(speeds, key=lambda pair: pair[0])
    return Earned(today, best, fastest, speed)


def _seconds_of_an_epoch(run: RunSummary) -> float:
    """With its evaluation: to find the fast ones, not to be told."""
    return (run.seconds or 0.0) / (run.epochs or 1)


def _speed(kept: RunSummary) -> float:
    """Samples a second over all its epochs, as Train shows them."""
    found = runs.run(kept.id)
    return (training_speed(found.history) if found else None) or 0.0


def by_lesson(found: Earned) -> dict[str, str]:
    """A figure for each lesson that has one, unless its page hides it until a guess."""
    earned = {}
    if found.samples_per_second:
        earned["Train"] = f"up to {found.samples_per_second:,.0f} samples/s"
    if found.best:
        earned["Evaluate"] = f"{found.best.accuracy:.1%} right"
    says: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
        ("Model", transfers.PANEL.address, _of_transfers),
        ("Compare", race.PANEL.address, _of_race),
        ("Speed", ladder.PANEL.address, _of_climb),
        ("Scale", cost.LAB.panel.address, _of_ranks),
    )
    for title, address, say in says:
        job = measured.newest(address)
        if job is not None and (text := say(job.value)):
            earned[title] = text
    return earned


def _of_transfers(found: Transfers) -> str:
    if guess.made(transfers.GUESS) is None:
        return ""
    rates = [each.bytes / median(each.seconds) for each in found.measured]
    return f"up to {format.size(max(rates))}/s copied" if rates else ""


def _of_race(found: Race) -> str:
    speedup = found.speedup()
    if speedup is None or guess.made(race.GUESS) is None:
        return ""
    if speedup.winner is None:
        return "too close to call"
    winner = found.candidates[speedup.winner].name
    if not speedup.steady:
        return f"{winner} wins"
    ratio = speedup.median if speedup.winner else 1 / speedup.median
    return f"{format.times(ratio)}× for {winner}"


def _of_climb(found: Climbed) -> str:
    gain = found.speedup
    if (
        gain is None
        or not gain.steady
        or not all(map(rungs.is_revealed, found.results))
    ):
        return ""
    return f"{format.times(gain.median)}× on the ladder"


def _of_ranks(found: Cost) -> str:
    gain = found.speedup(cost.two(found))
    if not gain.is_sure or guess.made(cost.GUESS) is None:
        return ""
    where = f"{found.backend}, {found.environment.backend}"
    return f"{format.times(gain.median)}× on 2 ranks ({where})"


def draw(found: Earned) -> None:
    """A row of figures; what there is none for is not shown."""
    shown, notes = {}, {}
    if found.fastest and found.samples_per_second:
        shown["Fastest run, samples/s"] = f"{found.samples_per_second:,.0f}"
        notes["Fastest run, samples/s"] = f"In training: {_how(found.fastest)}"
    if found.best:
        shown["Best accuracy"] = f"{found.best.accuracy:.2%}"
        notes["Best accuracy"] = _how(found.best)
    job = measured.newest(race.PANEL.address)
    if job is not None and (ratio := _accelerator_over_cpu(job.value)):
        shown["Accelerator over CPU"] = ratio
        notes["Accelerator over CPU"] = measured.sentence(job)
    if found.today:
        shown["Runs today"] = f"{found.today:,}"
    if (here := len(people())) > 1:
        shown["People here now"] = f"{here:,}"
    if shown:
        st.subheader("On this machine so far")
        figures.metrics(shown, notes)


def _accelerator_over_cpu(found: Race) -> str:
    backends = [each.backend for each in found.candidates]
    speedup = found.speedup()
    if speedup is None or (backends[0] == "CPU") == (backends[1] == "CPU"):
        return ""
    if guess.made(race.GUESS) is None or not speedup.is_sure:
        return ""
    ratio = speedup.median if backends[0] == "CPU" else 1 / speedup.median
    return f"{format.times(ratio)}×"


def _how(run: RunSummary) -> str:
    """With what a run has reached it."""
    config = run.config
    assert config is not None
    return (
        f"{format.NAMES[config.model]} on {format.NAMES[config.task]}, "
        f"{format.counted(config.epochs, 'epoch')}, batch {config.batch_size}, "
        f"on {run.device_name}."
    )
