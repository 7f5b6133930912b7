"""Figures of comparisons as flat rows, for CSV and JSON.

Each row says all that a figure has to be read with: n, median, spread, device, torch,
threads and date.
"""

from collections.abc import Iterable
from dataclasses import replace
from statistics import median

from core.compare.results import PARTS, Crossover, Race, StepProfile, TimingLab
from core.measure.rows import Row, row


def of_race(race: Race) -> list[Row]:
    """A row a candidate and loop; the warm-up has rows of its own, with n = 1."""
    rows = []
    for index, candidate in enumerate(race.candidates):
        environment = race.environments[index]
        warm_up = [t for t in race.trials if t.candidate == index and not t.repeat]
        for trials, note in ((race.counted(index), ""), (warm_up, ", warm-up")):
            if environment is None or not trials:
                continue
            first = trials[0]
            joules = [trial.joules for trial in trials if trial.joules is not None]
            training = [trial.train_seconds for trial in trials]
            evaluation = [trial.evaluate_seconds for trial in trials]
            rows += [
                row(
                    f"{loop}{note}",
                    seconds,
                    environment,
                    race.date,
                    contender=candidate.name,
                    task=race.config.task,
                    model=race.config.model,
                    batch_size=race.config.batch_size,
                    steps=first.steps if note else race.steps,
                    seed=race.config.seed,
                    joules_a_heat=median(joules) if joules else None,
                    samples_per_second=None if note else samples / median(seconds),
                )
                for loop, seconds, samples in (
                    ("training", training, first.train_samples),
                    ("evaluation", evaluation, first.evaluate_samples),
                )
            ]
    return rows


def of_crossover(found: Crossover) -> list[Row]:
    """A row a cell and candidate, with the speed-up of the cell."""
    return [
        row(
            "training step",
            seconds,
            environment,
            found.date,
            contender=candidate.name,
            width=cell.width,
            batch_size=cell.batch_size,
            speedup_of_second=cell.speedup.median,
            speedup_least=cell.speedup.interval[0],
            speedup_most=cell.speedup.interval[1],
        )
        for cell in found.cells
        for seconds, environment, candidate in zip(
            (cell.first, cell.second), found.environments, found.candidates, strict=True
        )
    ]


def of_lab(lab: TimingLab) -> list[Row]:
    """Two rows a way, the first call apart; a row a size and number of threads."""
    calls = [
        row(what, seconds, lab.environment, lab.date, way=each.way, size=lab.size)
        for each in lab.readings
        for what, seconds in (
            ("first call", each.seconds[:1]),
            ("later calls", each.seconds[1:]),
        )
    ]
    threads = [
        row(
            "multiplication",
            each.seconds,
            replace(lab.cpu_environment, threads=each.threads),
            lab.date,
            way=None,
            size=each.size,
        )
        for each in lab.threads
    ]
    return calls + threads


def of_breakdown(found: Iterable[StepProfile]) -> list[Row]:
    """A row a feed, device and part, and two for the whole step."""
    return [
        row(
            what,
            seconds,
            each.environment,
            each.date,
            feed=each.feed,
            task=each.config.task,
            model=each.config.model,
            batch_size=each.config.batch_size,
        )
        for each in found
        for what, seconds in (
            *((part, each.parts[part]) for part in PARTS),
            ("whole step", each.step),
            ("whole step, not profiled", each.unprofiled),
        )
    ]
