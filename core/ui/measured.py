"""What was measured on this machine before, by whomever: when, on what, and by whom.

A page opens with the newest, until the visitor measures anew.
"""

import logging
import time
from functools import lru_cache

import streamlit as st

from core.jobs.job import Job
from core.jobs.measured import KINDS, as_job, environments
from core.store.codec import StoreError
from core.ui import format
from core.ui.server import engine, store, visitor

logger = logging.getLogger(__name__)


def newest(address: str, subject: str | None = None) -> Job | None:
    """The newest that this function has measured on this machine, as an ended job.

    Of one subject, or of any. None where there is none, or where it can't be read.
    """
    here = machine()
    if address not in KINDS or not here:
        return None
    try:
        found = store().measurements.newest_id(address, here, subject)
        return _read(found, address) if found else None
    except StoreError as error:
        logger.warning("what was measured is not shown: %s", error)
        return None


@lru_cache(maxsize=64)  # a page asks for five of them each time it is drawn
def _read(measurement_id: str, address: str) -> Job | None:
    found = store().measurements.get(measurement_id)
    try:
        return None if found is None else as_job(found)
    except (KeyError, TypeError):  # another version has told other things of it
        logger.warning("a measurement of %s can't be shown", address, exc_info=True)
        return None


def forget() -> None:
    """Keep nothing here; it is read again for whoever looks."""
    _read.cache_clear()


def machine() -> str:
    """The identity of the machine that pages are about; empty while it isn't known."""
    known = engine().machine()
    return known.identity if known else ""


def tell(job: Job) -> None:
    """Say above its figures when they were measured, on what, and by whom."""
    st.markdown(f":material/history: {sentence(job)}")


def sentence(job: Job) -> str:
    """Measured 3 hours ago on A processor, 1 thread, torch 2.15, by you."""
    found = environments(job.value)
    where = dict.fromkeys(each.device_name for each in found)
    versions = dict.fromkeys(f"torch {each.torch}" for each in found)
    threads = {each.threads for each in found}
    details = [" and ".join(where), *versions]
    if len(threads) == 1:  # those that race may differ in nothing else
        details.insert(1, format.counted(threads.pop(), "thread"))
    when = format.ago(time.time() - (job.stopped or job.submitted))
    return f"Measured {when} on {', '.join(details)}, {by(job.owner)}."


def by(owner: str) -> str:
    """Who measured it: no name is told."""
    if not owner:
        return "by this server in idle time"
    return "by you" if owner == visitor() else "by somebody in this course"
