"""To and from the records of core.measure.records."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from core.compare.candidates import Candidate
from core.compare.results import (
    PARTS,
    CandidateFailure,
    Cell,
    Crossover,
    Race,
    Reading,
    StepProfile,
    ThreadReading,
    TimingLab,
    Trial,
)
from core.config import RunConfig
from core.measure.environment import Environment
from core.measure.records import Record
from core.speed.ladder import Climb, Climbed, Result, Roofline


def race_to_json(race: Race) -> dict[str, Any]:
    """Without the single losses, which are many and say nothing of speed."""
    found = asdict(race)
    for trial in found["trials"]:
        trial["losses"] = ()
    return found


def race_from_json(found: dict[str, Any]) -> Race:
    return Race(
        _contenders(found),
        _environments(found["environments"]),
        RunConfig(**found["config"]),
        found["steps"],
        found["repeats"],
        tuple(Trial(**{**trial, "losses": ()}) for trial in found["trials"]),
        tuple(CandidateFailure(**each) for each in found["failures"]),
        found["date"],
    )


def crossover_from_json(found: dict[str, Any]) -> Crossover:
    cells = [
        Cell(c["width"], c["batch_size"], _numbers(c["first"]), _numbers(c["second"]))
        for c in found["cells"]
    ]
    return Crossover(
        _contenders(found),
        _environments(found["environments"]),
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
        Environment(**found["environment"]),
        Environment(**found["cpu_environment"]),
        found["date"],
    )


def breakdown_to_json(found: StepProfile) -> dict[str, Any]:
    """Without the trace."""
    return {**asdict(found), "trace": None}


def breakdown_from_json(found: dict[str, Any]) -> StepProfile:
    return StepProfile(
        found["feed"],
        {part: _numbers(found["parts"][part]) for part in PARTS},
        _numbers(found["step"]),
        _numbers(found["unprofiled"]),
        RunConfig(**found["config"]),
        Environment(**found["environment"]),
        found["date"],
    )


def climb_from_json(found: dict[str, Any]) -> Climbed:
    limit = found["limit"]
    return Climbed(
        Climb(**found["climb"]),
        Roofline(
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
        Environment(**found["environment"]),
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


def _contenders(found: dict[str, Any]) -> tuple[Candidate, Candidate]:
    first, second = (Candidate(**each) for each in found["candidates"])
    return first, second


def _environments(values: Sequence[Any]) -> tuple[Any, Any]:
    first, second = (each and Environment(**each) for each in values)
    return first, second


def _numbers(values: Sequence[float]) -> tuple[float, ...]:
    """ValueError where there is none, or one that is below 0."""
    if not values or not all(value >= 0 for value in values):
        raise ValueError("there must be seconds")
    return tuple(map(float, values))
