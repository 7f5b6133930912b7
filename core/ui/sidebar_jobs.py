"""What of this visitor's goes on, wherever they are: a link to it in the sidebar."""

import streamlit as st

from core.jobs.job import Job
from core.store.codec import StoreError
from core.ui import course, runs
from core.ui.links import link
from core.ui.server import engine, visitor

LOOK_SECONDS = 5.0  # a page about the job tells more, and sooner
ICONS = {"finished": ":material/check_circle:", "failed": ":material/error:"}


def draw() -> None:
    """A link to each job that goes on; it says so too when that has ended meanwhile."""
    ids = [job.id for job in engine().going_on(visitor())]
    if not ids:
        return

    @st.fragment(run_every=LOOK_SECONDS)
    def live() -> None:
        for job_id in ids:
            if (job := _look(job_id)) is not None:
                _link(job)

    live()


def _look(job_id: str) -> Job | None:
    try:
        return engine().job(job_id)
    except StoreError:
        return None


def _link(job: Job) -> None:
    lesson = course.of_address(job.address)
    if lesson is not None:
        link(
            lesson,
            f"{lesson.title}: {_state(job)}",
            icon=ICONS.get(job.status, ":material/info:") if job.ended else "spinner",
            query_params={"run": job.id} if job.address == runs.RUN else None,
        )


def _state(job: Job) -> str:
    """How far a job is, in a word or two."""
    if job.place:
        return f"place {job.place}"
    if job.status == "running" and job.address == runs.RUN:
        return f"{runs.view(job).share:.0%}"
    # It may have begun since: what stands here is some seconds old.
    return job.status if job.ended else "running"
