"""This machine's newest measurement: when, on which devices, and by whom it was made.

Labs show this measurement to visitors who haven't measured yet. One that was made while
the machine was busy doesn't displace an earlier one that says more.
"""

import logging
import time
from collections.abc import Callable
from datetime import date

import streamlit as st

from core.jobs import measurements
from core.jobs.job import Job
from core.jobs.measurements import as_job, environments
from core.store.cache import Cache
from core.store.codec import StoreError
from core.ui import format
from core.ui.server import engine, room, store, visitor

COMPARED = 4  # of a lab's newest measurements, the one that says most is shown
# How many guesses a result leaves open, by the address of the function that measured it
OPEN_GUESSES: dict[str, Callable[[Job], float]] = {}

logger = logging.getLogger(__name__)


def newest(address: str, subject: str | None = None) -> Job | None:
    """This machine's newest measurement by the function at `address`, as an ended job.

    An earlier one of the same is preferred if it leaves fewer guesses open.
    Measurements by students of the open class come last. If `subject`, the id of a run,
    is given, only measurements of this run count. None if no measurement can be read.
    """
    if not (here := machine()):
        return None
    members = (member.visitor for member in room().members())
    students = [member for member in members if not room().is_teacher(member)]
    try:
        wanted = address, here, subject, students, COMPARED
        return _read(*store().measurements.newest_ids(*wanted))
    except StoreError as error:
        logger.warning("could not read the newest measurement: %s", error)
        return None


def _clearest(*measurement_ids: str) -> Job | None:
    """Of measurements, the newest first, the one to show; None if none can be read."""
    rows = filter(None, map(store().measurements.get, measurement_ids))
    jobs = [as_job(row) for row in rows]
    alike = (job for job in jobs if is_same(job, jobs[0]))
    # Among equals, what a person measured comes before what the server did by itself.
    return min(alike, key=lambda job: (_open(job), not job.owner), default=None)


_read = Cache(_clearest, 64)


def _open(job: Job) -> float:
    count = OPEN_GUESSES.get(job.address)
    return count(job) if count else 0


def is_same(job: Job, other: Job) -> bool:
    """Whether both measured the same, on the same devices, with the same versions."""
    return (job.arguments, environments(job.value)) == (
        other.arguments,
        environments(other.value),
    )


def tell_clearer(job: Job) -> None:
    """Say if others see an earlier measurement instead of this finished job's."""
    shown = newest(job.address, measurements.subject(job.arguments) or None)
    if shown is None or not is_same(shown, job) or _open(shown) >= _open(job):
        return
    ago = format.ago(time.time() - (shown.stopped or shown.submitted))
    st.caption(
        f"Others still see the measurement from {ago}, which leaves fewer answers "
        "open: the machine was probably less busy then."
    )


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
