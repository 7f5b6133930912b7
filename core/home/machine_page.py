"""What Home shows of this machine: its device, and its records."""

from dataclasses import dataclass
from datetime import datetime

import streamlit as st

from core.lessons.compare import race_page as race
from core.lessons.compare.race_result import Race
from core.measure import rounding
from core.measure.environment import Machine
from core.results import training_speed
from core.store.tables import RunSummary
from core.ui import dataset, figures, format, guess, hosts, last_measurement, runs
from core.ui.server import engine_problem, open_pages, visitor
from to_device.words import Words

words = Words(__file__)

FRESH_SECONDS = 10.0
# The fastest run is sought among so many runs, those with the shortest epochs.
SHORTLIST = 3


def line(machine: Machine | None) -> None:
    """Draw the best device, the host, torch's version, and the dataset."""
    if machine is None:
        if problem := engine_problem():
            st.error(problem, title="There are no workers right now")
        else:
            st.caption(
                ":material/hourglass: The app is loading torch. This can take a minute."
            )
        return
    best = machine.devices[0]
    data = "Fashion-MNIST" if dataset.is_here(machine) else words("sprites")
    version = f"torch {best.torch.partition('+')[0]}"
    parts = (best.backend, best.device_name, hosts.names(), version, data)
    st.caption(" · ".join(filter(None, parts)))


@dataclass(frozen=True)
class Records:
    today: int = 0  # training runs since midnight, of all people
    best: RunSummary | None = None  # the most accurate run
    fastest: RunSummary | None = None
    samples_per_second: float = 0.0  # speed of the fastest run, over all its epochs


@st.cache_data(ttl=FRESH_SECONDS, max_entries=4, show_spinner=False)
def read(machine: Machine) -> Records:
    """Today's run count and the best runs; Records() if the database can't be read."""
    all_runs = runs.stored_runs(limit=None, hidden=True)
    midnight = datetime.now().replace(hour=0, minute=0, second=0, microsecond=0)
    since = midnight.timestamp()
    today = sum(run.visitor is not None and run.submitted >= since for run in all_runs)
    devices = {device.device_name for device in machine.devices}
    task = dataset.default_task(machine)
    finished = [
        run
        for run in all_runs
        if run.task == task and run.device_name in devices and run.seconds
    ]
    if not finished:
        return Records(today)
    best = max(finished, key=lambda run: run.accuracy or 0.0)
    finished.sort(key=lambda run: (run.seconds or 0.0) / (run.epochs or 1))
    speeds = []
    for run in finished[:SHORTLIST]:
        whole = runs.run(run.id)
        speeds.append((training_speed(whole.history) if whole else None) or 0.0)
    speed = max(speeds)
    return Records(today, best, finished[speeds.index(speed)], speed)


def draw(records: Records) -> None:
    values, notes = {}, {}
    if records.fastest and records.samples_per_second:
        values["Best samples/s"] = f"{records.samples_per_second:,.0f}"
        notes["Best samples/s"] = f"In training: {_how(records.fastest)}"
    if records.best:
        values["Best accuracy"] = f"{records.best.accuracy:.2%}"
        notes["Best accuracy"] = _how(records.best)
    job = last_measurement.newest(race.RaceLab.address)
    if job is not None and (ratio := _accelerator_over_cpu(job.value)):
        values["Against the CPU"] = ratio
        notes["Against the CPU"] = last_measurement.sentence(job)
    if records.today:
        values["Runs today"] = f"{records.today:,}"
    if (people := len(open_pages())) > 1:
        values["People here now"] = f"{people:,}"
    if values:
        st.header("On this machine so far")
        figures.metrics(values, notes)
        if records.fastest and records.best:
            fastest, best = _whose(records.fastest), _whose(records.best)
            st.caption(
                f"Both were trained {best}."
                if fastest == best
                else f"The fastest run was trained {fastest}, and the most "
                f"accurate one {best}."
            )


def _accelerator_over_cpu(result: Race) -> str:
    is_cpu = [candidate.backend == "CPU" for candidate in result.candidates]
    speedup = result.speedup()
    if speedup is None or is_cpu[0] == is_cpu[1]:
        return ""
    if not guess.shows(race.GUESS) or not speedup.is_sure:
        return ""
    return f"{rounding.times(speedup.ratio if is_cpu[0] else 1 / speedup.ratio)}×"


def _how(run: RunSummary) -> str:
    return f"{format.brief(run)}, on {run.device_name}, {_whose(run)}."


def _whose(run: RunSummary) -> str:
    if run.visitor is None:
        return "by the server itself in its idle time"
    return "by you" if run.visitor == visitor() else "by somebody in this course"
