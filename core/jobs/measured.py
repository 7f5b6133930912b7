"""What is kept of a measurement when its job has ended, and the job it is shown as.

A page draws both in the same way: what somebody has measured is an ended job, of the
past. What is not finished is not kept.
"""

import logging
from collections.abc import Iterable, Iterator
from typing import Any

from core.jobs.job import Job, Stored
from core.measure.environment import Environment
from core.store.measurements import Measurement, Measurements

logger = logging.getLogger(__name__)

FORGOTTEN = "forgotten"  # stands for a visitor who is no longer known

EVALUATE = "core.evaluate.evaluation:evaluate"
MODES = "core.evaluate.evaluation:compare_modes"
KINDS = frozenset(
    (
        "core.compare.crossover:measure",
        "core.compare.race:race",
        "core.compare.step_profile:measure",
        "core.compare.timing_pitfalls:measure",
        "core.evaluate.precision:compare",
        "core.machine.parallel:measure",
        "core.move.transfers:measure",
        "core.scale.cost:measure",
        "core.scale.gradients:measure",
        "core.speed.climb:climb",
        "core.speed.copies:measure",
        "core.speed.loader:measure",
        "core.speed.memory:measure",
        "core.speed.vectorize:measure",
        EVALUATE,
        MODES,
    )
)


def keep(measurements: Measurements, job: Job) -> None:
    """Keep what a job has measured, if it has: it may have failed, or be another."""
    if job.address not in KINDS or job.status != "finished" or not job.machine:
        return
    try:
        measurements.keep(
            job.address,
            job.value,
            machine=job.machine,
            subject=subject(job.arguments),
            provenance={
                "environments": environments(job.value),
                "arguments": job.arguments,
                "asked": bool(job.owner),  # by a person, also one who is forgotten
            },
            visitor=job.owner,
            measured_at=job.stopped,
        )
    except TypeError as error:
        logger.warning("what %s has measured is not kept: %s", job.address, error)


def subject(arguments: Iterable[Any]) -> str:
    """What was measured, where a page asks for that alone: the run of a checkpoint."""
    return next((each.name for each in arguments if isinstance(each, Stored)), "")


def as_job(measurement: Measurement) -> Job:
    """The ended job that has measured it."""
    known = measurement.provenance
    return Job(
        measurement.id,
        measurement.kind,
        known["arguments"],
        lane="train",
        owner=measurement.visitor or (FORGOTTEN if known["asked"] else ""),
        status="finished",
        value=measurement.value,
        submitted=measurement.measured_at,
        stopped=measurement.measured_at,
        machine=measurement.machine,
    )


def environments(value: Any) -> list[Environment]:
    """What the figures of a result have to be read with, each once."""
    return list(dict.fromkeys(_environments(value)))


def _environments(value: Any) -> Iterator[Environment]:
    if isinstance(value, Environment):
        yield value
    elif isinstance(value, dict):
        yield from _environments(tuple(value.values()))
    elif isinstance(value, tuple | list):
        for each in value:
            yield from _environments(each)
    else:
        yield from _environments(getattr(value, "environments", ()))
        yield from _environments(getattr(value, "environment", ()))
