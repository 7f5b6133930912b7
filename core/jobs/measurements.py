"""Measurements that outlast their jobs; pages draw each of them as an ended job.

This app's measurements are in the database. Other machines' measurements are in
core/reference/*.json, written by `core.bench`, and labeled with their device and date.
"""

import logging
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from core.jobs.job import Job, Stored
from core.measure.environment import Environment
from core.store import addresses
from core.store.codec import StoreError, loads
from core.store.measurements import Measurements
from core.store.tables import Measurement

logger = logging.getLogger(__name__)

FOLDER = Path(__file__).parents[1] / "reference"
FORGOTTEN = "forgotten"  # the owner of a measurement whose visitor was deleted

KINDS: set[str] = set()  # addresses of functions whose results are measurements


def keep(measurements: Measurements, job: Job) -> None:
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
                "asked": bool(job.owner),  # stays true if the visitor is deleted
            },
            visitor=job.owner,
            measured_at=job.stopped,
        )
    except TypeError as error:
        logger.warning("the measurement of %s was not saved: %s", job.address, error)


def subject(arguments: Iterable[Any]) -> str:
    """The id of the run whose checkpoint was measured; "" without one."""
    runs = (value.name for value in arguments if isinstance(value, Stored))
    return next(runs, "")


def as_job(measurement: Measurement) -> Job:
    provenance = measurement.provenance
    call = measurement.id, measurement.kind, provenance["arguments"]
    owner = measurement.visitor or (FORGOTTEN if provenance["asked"] else "")
    job = _finished(*call, measurement.value, measurement.measured_at)
    return replace(job, owner=owner, machine=measurement.machine)


@cache
def recorded(folder: Path = FOLDER) -> tuple[Job, ...]:
    """Other machines' records; a file that can't be read is logged and left out."""
    jobs = []
    for path in sorted(folder.glob("*.json")):
        try:
            text = addresses.with_names(path.read_text("utf-8"))
            date, *results = loads(text, f"The record {path.name}")
            time = datetime.fromisoformat(date).timestamp()
            for number, (address, arguments, value) in enumerate(results):
                call = f"{path.stem}-{number}", addresses.today(address), arguments
                jobs.append(_finished(*call, value, time))
        except (OSError, StoreError, TypeError, ValueError) as error:
            logger.warning("could not use a record: %s", error)
    return tuple(jobs)


def _finished(
    job_id: str, address: str, arguments: tuple[Any, ...], value: Any, at: float
) -> Job:
    job = Job(job_id, address, arguments, "train", status="finished", value=value)
    return replace(job, submitted=at, stopped=at)


def recorded_by(address: str) -> list[Job]:
    return [job for job in recorded() if job.address == address]


def label(job: Job) -> str:
    """Text such as "Recorded on NVIDIA H200, 2026-11-30 · CNN"."""
    model = getattr(job.arguments[0], "model", "")
    return f"{recorded_on(job)} · {model.upper()}" if model else recorded_on(job)


def recorded_on(job: Job) -> str:
    """Text such as "Recorded on NVIDIA H200, 2026-11-30".

    If a GPU was measured, the text doesn't name the CPU beside it.
    """
    day = datetime.fromtimestamp(job.stopped or job.submitted)
    where = environments(job.value)
    gpus = [device for device in where if device.backend != "CPU"]
    names = dict.fromkeys(device.device_name for device in gpus or where)
    return f"Recorded on {' and '.join(names)}, {day:%Y-%m-%d}"


def environments(value: Any) -> list[Environment]:
    """All environments in a result, each of them once."""
    if isinstance(value, Environment):
        return [value]
    if isinstance(value, dict):
        items = list(value.values())
    elif isinstance(value, tuple | list):
        items = list(value)
    else:
        names = ("environments", "environment")
        items = [getattr(value, name, ()) for name in names]
    return list(dict.fromkeys(chain.from_iterable(map(environments, items))))
