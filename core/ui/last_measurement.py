"""This machine's newest measurement: when, on which devices, and by whom it was made.

Labs show this measurement to visitors who haven't measured yet.
"""

import logging
import time
from datetime import date

import streamlit as st

from core.jobs.job import Job
from core.jobs.measurements import as_job, environments
from core.store.cache import Cache
from core.store.codec import StoreError
from core.ui import format
from core.ui.server import engine, room, store, visitor

logger = logging.getLogger(__name__)


def newest(address: str, subject: str | None = None) -> Job | None:
    """This machine's newest measurement by the function at `address`, as an ended job.

    Measurements by students of the open class come last. If `subject`, the id of a run,
    is given, only measurements of this run count. None if no measurement can be read.
    """
    if not (here := machine()):
        return None
    members = (member.visitor for member in room().members())
    students = [member for member in members if not room().is_teacher(member)]
    try:
        newest_id = store().measurements.newest_id(address, here, subject, students)
        return _read(newest_id) if newest_id else None
    except StoreError as error:
        logger.warning("could not read the newest measurement: %s", error)
        return None


def _read_job(measurement_id: str) -> Job | None:
    measurement = store().measurements.get(measurement_id)
    return None if measurement is None else as_job(measurement)


_read = Cache(_read_job, 64)


def forget(owner: str) -> None:
    """Drop what the cache holds of an owner whose data is deleted."""
    _read.drop(lambda _, job: job is None or job.owner == owner)


def machine() -> str:
    """This machine's identity; "" until it is known."""
    return here.identity if (here := engine().machine()) else ""


def tell(job: Job) -> None:
    st.markdown(f":material/history: {sentence(job)}")


def sentence(job: Job, who: str = "", on_paper: bool = False) -> str:
    """Text such as "Measured 3 hours ago on A processor, 1 thread, torch 2.15, by you."

    `who` is the reader; "" stands for the visitor whose page this thread draws. What is
    `on_paper` is read later, so it names the day.
    """
    places = environments(job.value)
    names = dict.fromkeys(environment.device_name for environment in places)
    versions = dict.fromkeys(f"torch {environment.torch}" for environment in places)
    threads = {environment.threads for environment in places}
    details = [" and ".join(names), *versions]
    # A result with `cores` compares numbers of threads, and its figures name them.
    if cores := getattr(job.value, "cores", None):
        details.insert(1, format.counted(cores, "core"))
    elif len(threads) == 1:  # a race's candidates may differ in threads
        details.insert(1, format.counted(threads.pop(), "thread"))
    at = job.stopped or job.submitted
    when = format.ago(time.time() - at)
    if on_paper:
        when = format.day(date.fromtimestamp(at))
    by = "somebody in this course" if job.owner else "this server itself"
    if job.owner and job.owner == (who or visitor()):
        by = "you"
    return f"Measured {when} on {', '.join(details)}, by {by}."
