"""Measurements of other machines: core/reference/*.json, written by `core.bench`.

A record is a list of ended jobs, so a page draws them as it draws its own, always
labelled with their device and date.
"""

import logging
from dataclasses import replace
from datetime import datetime
from functools import cache
from pathlib import Path

from core.jobs.job import Job
from core.jobs.measurements import environments
from core.store.codec import StoreError, loads

FOLDER = Path(__file__).parents[1] / "reference"

logger = logging.getLogger(__name__)


@cache
def read(folder: Path = FOLDER) -> tuple[Job, ...]:
    """All that was recorded; a file that can't be read is left out, and logged."""
    jobs = []
    for path in sorted(folder.glob("*.json")):
        try:
            date, *measured = loads(path.read_text("utf-8"), f"The record {path.name}")
            time = datetime.fromisoformat(date).timestamp()
            for number, (address, arguments, value) in enumerate(measured):
                job = Job(f"{path.stem}-{number}", address, arguments, lane="train")
                job = replace(job, status="finished", value=value)
                jobs.append(replace(job, submitted=time, stopped=time))
        except (OSError, StoreError, TypeError, ValueError) as error:
            logger.warning("a record is left out: %s", error)
    return tuple(jobs)


def of(address: str) -> list[Job]:
    """What the function at the address has measured on other machines."""
    return [job for job in read() if job.address == address]


def label(job: Job) -> str:
    """Where and when: "NVIDIA H200, recorded 2026-11-30"."""
    day = datetime.fromtimestamp(job.stopped or job.submitted)
    names = dict.fromkeys(each.device_name for each in environments(job.value))
    return f"{' and '.join(names)}, recorded {day:%Y-%m-%d}"
