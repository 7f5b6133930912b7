"""Figures of comparisons as flat rows, for CSV and JSON, and back from records.

Each row says all that a figure has to be read with: n, median, spread, device, torch,
threads and date.
"""

from collections.abc import Iterable
from dataclasses import replace
from statistics import median

from core.compare.results import (
    PARTS,
    Crossover,
    Race,
    StepProfile,
    TimingLab,
)
from core.measure.rows import Row, row


def of_race(race: Race) -> list[Row]:
    """A row a candidate and loop; the warm-up has rows of its own, with n = 1."""
    rows = []
    config = race.config
    for index, candidate in enumerate(race.candidates):
        environment = race.environments[index]
        if environment is None:
            continue
        more = {
            "contender": candidate.name,
            "task": config.task,
            "model": config.model,
            "batch_size": config.batch_size,
            "steps": race.steps,
            "seed": config.seed,
        }
        counted = race.counted(index)
        joules = [trial.joules for trial in counted if trial.joules is not None]
        more["joules_a_heat"] = median(joules) if joules else None
        for loop in ("training", "evaluation"):
            if not counted:
                break
            seconds = race.seconds(index, loop)
            first = counted[0]
            samples = (
                first.train_samples if loop == "training" else first.evaluate_samples
            )
            more["samples_per_second"] = samples / median(seconds)
            rows.append(row(loop, seconds, environment, race.date, **more))
        for trial in race.trials:
            if trial.candidate == index and trial.repeat == 0:
                more |= {"steps": trial.steps, "samples_per_second": None}
                more["joules_a_heat"] = trial.joules
                times = (trial.train_seconds, trial.evaluate_seconds)
                for loop, taken in zip(("training", "evaluation"), times, strict=True):
                    what = f"{loop}, warm-up"
                    rows.append(row(what, [taken], environment, race.date, **more))
    return rows


def of_crossover(found: Crossover) -> list[Row]:
    """A row a cell and candidate, with the speed-up of the cell."""
    rows = []
    for cell in found.cells:
        low, high = cell.speedup.interval
        for index, seconds in enumerate((cell.first, cell.second)):
            rows.append(
                row(
                    "training step",
                    seconds,
                    found.environments[index],
                    found.date,
                    candidate=found.candidates[index].name,
                    width=cell.width,
                    batch_size=cell.batch_size,
                    speedup_of_second=cell.speedup.median,
                    speedup_least=low,
                    speedup_most=high,
                )
            )
    return rows


def of_lab(lab: TimingLab) -> list[Row]:
    """Two rows a way, the first call apart; a row a size and number of threads."""
    rows = []
    for reading in lab.readings:
        calls = {"way": reading.way, "size": lab.size}
        for what, seconds in (
            ("first call", reading.seconds[:1]),
            ("later calls", reading.seconds[1:]),
        ):
            rows.append(row(what, seconds, lab.environment, lab.date, **calls))
    for each in lab.threads:
        environment = replace(lab.cpu_environment, threads=each.threads)
        what = "multiplication"
        rows.append(
            row(what, each.seconds, environment, lab.date, way=None, size=each.size)
        )
    return rows


def of_breakdown(found: Iterable[StepProfile]) -> list[Row]:
    """A row a feed, device and part, and two for the whole step."""
    rows = []
    for each in found:
        more = {
            "feed": each.feed,
            "task": each.config.task,
            "model": each.config.model,
            "batch_size": each.config.batch_size,
        }
        series = {
            **{part: each.parts[part] for part in PARTS},
            "whole step": each.step,
            "whole step, not profiled": each.unprofiled,
        }
        for what, seconds in series.items():
            rows.append(row(what, seconds, each.environment, each.date, **more))
    return rows
