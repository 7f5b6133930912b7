"""The course map, and the figures that this machine has reached so far."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any

import streamlit as st

from core.lessons.compare import race_page as race
from core.lessons.compare.race_result import Race
from core.lessons.model import transfers_page as transfers
from core.lessons.model.model_result import Transfers
from core.lessons.scale import cost_page as cost
from core.lessons.scale.scale_result import Cost
from core.lessons.speed import ladder_page as ladder
from core.lessons.speed import rungs_page as rungs
from core.lessons.speed.climb_result import Climbed
from core.measure.environment import Machine
from core.results import training_speed
from core.store.tables import RunSummary
from core.ui import (
    answers,
    dataset,
    figures,
    format,
    guess,
    last_measurement,
    runs,
)
from core.ui.course import LESSONS, link
from core.ui.server import open_pages

FRESH_SECONDS = 10.0
STYLE = Path(__file__).with_name("course.css")
SHORTLIST = 3  # runs with the shortest epochs; the fastest in samples/s is among them


@dataclass(frozen=True)
class Records:
    today: int = 0  # training runs since midnight, of all people
    best: RunSummary | None = None  # the most accurate
    fastest: RunSummary | None = None
    samples_per_second: float = 0.0  # speed of the fastest run, over all its epochs


@st.cache_data(ttl=FRESH_SECONDS, max_entries=4, show_spinner=False)
def records(machine: Machine) -> Records:
    """The records in the database; empty if it can't be read."""
    all_runs = runs.stored_runs(limit=None, hidden=True)
    midnight = datetime.now().replace(hour=0, minute=0, second=0, microsecond=0)
    today = sum(
        run.visitor is not None and run.submitted >= midnight.timestamp()
        for run in all_runs
    )
    devices = {device.device_name for device in machine.devices}
    task = dataset.default_task(machine)
    evaluated = [
        run
        for run in all_runs
        if run.task == task and run.device_name in devices and run.accuracy is not None
    ]
    if not evaluated:
        return Records(today)
    best = max(evaluated, key=lambda run: run.accuracy or 0.0)
    evaluated.sort(key=lambda run: (run.seconds or 0.0) / (run.epochs or 1))
    speeds = []
    for run in evaluated[:SHORTLIST]:
        whole = runs.run(run.id)
        speeds.append((training_speed(whole.history) if whole else None) or 0.0)
    speed = max(speeds)
    return Records(today, best, evaluated[speeds.index(speed)], speed)


def by_lesson(reached: Records) -> dict[str, str]:
    """A figure for each lesson that has one, unless its page hides it until a guess."""
    by_title = {}
    if reached.samples_per_second:
        by_title["Train"] = f"up to {reached.samples_per_second:,.0f} samples/s"
    if reached.best:
        by_title["Evaluate"] = f"{reached.best.accuracy:.1%} right"
    says: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
        ("Model", transfers.TransfersLab.address, _of_transfers),
        ("Compare", race.RaceLab.address, _of_race),
        ("Speed", ladder.PANEL.address, _of_climb),
        ("Scale", cost.CostLab.address, _of_ranks),
    )
    for title, address, say in says:
        job = last_measurement.newest(address)
        if job is not None and (text := say(job.value)):
            by_title[title] = text
    return by_title


def _of_transfers(result: Transfers) -> str:
    if guess.made(transfers.GUESS) is None:
        return ""
    rates = [copy.bytes / median(copy.seconds) for copy in result.measured]
    return f"up to {format.size(max(rates))}/s copied" if rates else ""


def _of_race(result: Race) -> str:
    speedup = result.speedup()
    if speedup is None or guess.made(race.GUESS) is None:
        return ""
    if speedup.winner is None:
        return "too close to call"
    return f"{speedup.of_winner.by}× for {result.candidates[speedup.winner].name}"


def _of_climb(result: Climbed) -> str:
    gain = result.speedup
    if gain and gain.is_sure and all(map(rungs.is_revealed, result.results)):
        return f"{gain.by}× on the ladder"
    return ""


def _of_ranks(result: Cost) -> str:
    gain = result.speedup(cost.two(result))
    if not gain.is_sure or guess.made(cost.GUESS) is None:
        return ""
    where = f"{result.backend}, {result.environment.backend}"
    return f"{format.times(gain.ratio)}× on 2 ranks ({where})"


def draw_lessons(by_title: dict[str, str]) -> None:
    """A card per lesson; `by_title` has a figure for some lessons' titles."""
    given = answers.given()
    first = next((each for each in LESSONS if not each.is_done(given)), None)
    begun = any(each.solved(given) for each in LESSONS)
    st.html(STYLE)
    with st.grid(columns=3, min_column_width=150):
        for number, lesson in enumerate(LESSONS, 1):
            with st.container(
                border=True, height="stretch", gap="xsmall", key=f"lesson_{number}"
            ):
                check = " :green[:material/check:]" if lesson.is_done(given) else ""
                place = "Going further:" if lesson.further else f"{number}."
                link(lesson, f"**{place} {lesson.title}**{check}")
                st.markdown(lesson.asks)
                figure = by_title.get(lesson.title)
                line = f"{lesson.minutes} min" + (f" · **{figure}**" if figure else "")
                asked, solved = len(lesson.questions), lesson.solved(given)
                if 0 < solved < asked:
                    line += f" · {solved} of {asked} answered"
                if lesson is first:
                    where = f"{'Continue' if begun else 'Start'} here"
                    line += f" :gray-badge[:material/flag: {where}]"
                st.markdown(f":small[{line}]")


def draw_records(reached: Records) -> None:
    values, notes = {}, {}
    if reached.fastest and reached.samples_per_second:
        values["Fastest run, samples/s"] = f"{reached.samples_per_second:,.0f}"
        notes["Fastest run, samples/s"] = f"In training: {_how(reached.fastest)}"
    if reached.best:
        values["Best accuracy"] = f"{reached.best.accuracy:.2%}"
        notes["Best accuracy"] = _how(reached.best)
    job = last_measurement.newest(race.RaceLab.address)
    if job is not None and (ratio := _accelerator_over_cpu(job.value)):
        values["Accelerator versus CPU"] = ratio
        notes["Accelerator versus CPU"] = last_measurement.sentence(job)
    if reached.today:
        values["Runs today"] = f"{reached.today:,}"
    if (people := len(open_pages())) > 1:
        values["People here now"] = f"{people:,}"
    if values:
        st.subheader("On this machine so far")
        figures.metrics(values, notes)


def _accelerator_over_cpu(result: Race) -> str:
    is_cpu = [candidate.backend == "CPU" for candidate in result.candidates]
    speedup = result.speedup()
    if speedup is None or is_cpu[0] == is_cpu[1]:
        return ""
    if guess.made(race.GUESS) is None or not speedup.is_sure:
        return ""
    return f"{format.times(speedup.ratio if is_cpu[0] else 1 / speedup.ratio)}×"


def _how(run: RunSummary) -> str:
    return f"{format.brief(run)}, on {run.device_name}."
