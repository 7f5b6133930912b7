"""Measurements that outlast their jobs, and the ended jobs that pages draw them as."""

import logging
from collections.abc import Iterable, Iterator
from typing import Any

from core.jobs.job import Job, Stored
from core.measure.environment import Environment
from core.store.measurements import Measurements
from core.store.tables import Measurement

logger = logging.getLogger(__name__)

FORGOTTEN = "forgotten"  # the owner, where the visitor was deleted

KINDS: set[str] = set()  # addresses of functions that measure; panels add theirs


def keep(measurements: Measurements, job: Job) -> None:
    """Store what a finished job has measured; jobs that measure nothing are ignored."""
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
                "asked": bool(job.owner),  # stays true when the visitor is deleted
            },
            visitor=job.owner,
            measured_at=job.stopped,
        )
    except TypeError as error:
        logger.warning("what %s has measured is not kept: %s", job.address, error)


def subject(arguments: Iterable[Any]) -> str:
    """The run whose checkpoint was measured; "" where none was."""
    stored = (each.name for each in arguments if isinstance(each, Stored))
    return next(stored, "")


def as_job(measurement: Measurement) -> Job:
    """The ended job that the measurement is drawn as."""
    provenance = measurement.provenance
    return Job(
        measurement.id,
        measurement.kind,
        provenance["arguments"],
        lane="train",
        owner=measurement.visitor or (FORGOTTEN if provenance["asked"] else ""),
        status="finished",
        value=measurement.value,
        submitted=measurement.measured_at,
        stopped=measurement.measured_at,
        machine=measurement.machine,
    )


def environments(value: Any) -> list[Environment]:
    """The environments that a result was measured in, each once."""
    return list(dict.fromkeys(_environments(value)))


def _environments(value: Any) -> Iterator[Environment]:
    if isinstance(value, Environment):
        yield value
    elif isinstance(value, dict):
        yield from _environments(tuple(value.values()))
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _environments(item)
    else:
        yield from _environments(getattr(value, "environments", ()))
        yield from _environments(getattr(value, "environment", ()))
