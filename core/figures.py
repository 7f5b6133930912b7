"""Figures of comparisons as flat rows, for CSV and JSON, and back from records.

Each row says all that a figure has to be read with: n, median, spread, device, torch,
threads and date.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from statistics import median
from typing import Any

from core.comparison import (
    PARTS,
    Breakdown,
    Cell,
    Contender,
    Crossover,
    Environment,
    Failure,
    Heat,
    Race,
    Reading,
    ThreadReading,
    TimingLab,
)
from core.config import RunConfig
from core.ladder import Climb, Climbed, Limit, Result, over_first
from core.reference import Record

Row = dict[str, Any]


def row(
    what: str,
    seconds: Sequence[float],
    environment: Environment,
    date: str,
    **more: Any,
) -> Row:
    """One measured thing; spread is the least and the most of n repeats."""
    return {
        "what": what,
        "n": len(seconds),
        "median_seconds": median(seconds),
        "least_seconds": min(seconds),
        "most_seconds": max(seconds),
        **more,
        **environment,
        "date": date,
    }


def of_race(race: Race) -> list[Row]:
    """A row a contender and loop; the warm-up has rows of its own, with n = 1."""
    rows = []
    config = race.config
    for index, contender in enumerate(race.contenders):
        environment = race.environments[index]
        if environment is None:
            continue
        more = {
            "contender": contender.name,
            "task": config.task,
            "model": config.model,
            "batch_size": config.batch_size,
            "steps": race.steps,
            "seed": config.seed,
        }
        counted = race.counted(index)
        joules = [heat.joules for heat in counted if heat.joules is not None]
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
        for heat in race.heats:
            if heat.contender == index and heat.repeat == 0:
                more |= {"steps": heat.steps, "samples_per_second": None}
                more["joules_a_heat"] = heat.joules
                times = (heat.train_seconds, heat.evaluate_seconds)
                for loop, taken in zip(("training", "evaluation"), times, strict=True):
                    what = f"{loop}, warm-up"
                    rows.append(row(what, [taken], environment, race.date, **more))
    return rows


def of_crossover(found: Crossover) -> list[Row]:
    """A row a cell and contender, with the speed-up of the cell."""
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
                    contender=found.contenders[index].name,
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
        environment = {**lab.cpu_environment, "threads": each.threads}
        what = "multiplication"
        rows.append(
            row(what, each.seconds, environment, lab.date, way=None, size=each.size)
        )
    return rows


def of_breakdown(found: Iterable[Breakdown]) -> list[Row]:
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


def of_climb(done: Climbed) -> list[Row]:
    """A row a rung that was measured."""
    return [
        row(
            "epoch",
            each.seconds,
            done.environment,
            done.date,
            rung=each.rung,
            compared_with=each.base,
            kept=each.kept,
            task=done.climb.task,
            model=done.climb.model,
            samples_per_second=each.samples_per_second,
            speedup_over_first=over_first(each, done.results),
            start_seconds=each.start_seconds,
            test_accuracy=each.accuracy,
            peak_bytes=each.peak_bytes,
            limit_seconds=done.limit.seconds(each.samples, each.steps),
        )
        for each in done.results
        if each.measured
    ]


# To and from the records of core.reference


def race_to_json(race: Race) -> dict[str, Any]:
    """Without the single losses, which are many and say nothing of speed."""
    found = asdict(race)
    for heat in found["heats"]:
        heat["losses"] = ()
    return found


def race_from_json(found: dict[str, Any]) -> Race:
    return Race(
        _contenders(found),
        _pair(found["environments"]),
        RunConfig(**found["config"]),
        found["steps"],
        found["repeats"],
        tuple(Heat(**{**heat, "losses": ()}) for heat in found["heats"]),
        tuple(Failure(**each) for each in found["failures"]),
        found["date"],
    )


def crossover_from_json(found: dict[str, Any]) -> Crossover:
    cells = [
        Cell(c["width"], c["batch_size"], _numbers(c["first"]), _numbers(c["second"]))
        for c in found["cells"]
    ]
    return Crossover(
        _contenders(found),
        _pair(found["environments"]),
        tuple(cells),
        found["planned"],
        found["budget_seconds"],
        found["stopped"],
        found["date"],
    )


def lab_from_json(found: dict[str, Any]) -> TimingLab:
    return TimingLab(
        found["device"],
        found["size"],
        tuple(Reading(r["way"], _numbers(r["seconds"])) for r in found["readings"]),
        tuple(
            ThreadReading(r["size"], r["threads"], _numbers(r["seconds"]))
            for r in found["threads"]
        ),
        found["environment"],
        found["cpu_environment"],
        found["date"],
    )


def breakdown_to_json(found: Breakdown) -> dict[str, Any]:
    """Without the trace."""
    return {**asdict(found), "trace": None}


def breakdown_from_json(found: dict[str, Any]) -> Breakdown:
    return Breakdown(
        found["feed"],
        {part: _numbers(found["parts"][part]) for part in PARTS},
        _numbers(found["step"]),
        _numbers(found["unprofiled"]),
        RunConfig(**found["config"]),
        found["environment"],
        found["date"],
    )


def climb_from_json(found: dict[str, Any]) -> Climbed:
    limit = found["limit"]
    return Climbed(
        Climb(**found["climb"]),
        Limit(
            limit["flops_per_image"],
            limit["bytes_per_image"],
            limit["bytes_per_step"],
            {k: _numbers(v) for k, v in limit["flops_per_second"].items()},
            _numbers(limit["bytes_per_second"]),
            _numbers(limit["state_bytes_per_second"]),
        ),
        tuple(
            Result(
                **{
                    **each,
                    "seconds": tuple(each["seconds"]),
                    "base_seconds": tuple(each["base_seconds"]),
                }
            )
            for each in found["results"]
        ),
        found["environment"],
        found["date"],
    )


RESTORE: dict[str, Callable[[dict[str, Any]], Any]] = {
    "races": race_from_json,
    "crossovers": crossover_from_json,
    "labs": lab_from_json,
    "breakdowns": breakdown_from_json,
    "climbs": climb_from_json,
}


def recorded(record: Record, section: str) -> tuple[list[Any], str]:
    """What a record holds of a section of RESTORE, and what is wrong with it."""
    try:
        return [RESTORE[section](each) for each in record.figures.get(section, [])], ""
    except (AttributeError, KeyError, TypeError, ValueError):
        return [], f"The {section} of {record.label} are damaged: left out."


def _contenders(found: dict[str, Any]) -> tuple[Contender, Contender]:
    first, second = (Contender(**each) for each in found["contenders"])
    return first, second


def _pair(values: Sequence[Any]) -> tuple[Any, Any]:
    first, second = values
    return first, second


def _numbers(values: Sequence[float]) -> tuple[float, ...]:
    """ValueError where there is none, or one that is below 0."""
    if not values or not all(value >= 0 for value in values):
        raise ValueError("there must be seconds")
    return tuple(map(float, values))
