"""The notice that Fashion-MNIST is missing or damaged, and its download."""

import streamlit as st

from core.data.fashion_mnist import Download
from core.jobs.job import Job
from core.measure.environment import Machine
from core.ui import format, job_panel, polling
from core.ui.dataset import is_here
from core.ui.server import engine, explained, visitor
from to_device.words import Words

FETCH = "core.data.fashion_mnist:download"
words = Words(__file__)


def offer(machine: Machine) -> None:
    status = machine.fashion_mnist
    if status.problem:
        st.error(
            f"{status.problem} Until then, you can train on the sprites.",
            title="Fashion-MNIST can't be used",
            icon=":material/error:",
        )
    else:
        st.info(words("dataset.missing"), icon=":material/info:")
    if status.named:
        st.markdown(words("dataset.named"))
        return
    job, label = _job(), "Fetch Fashion-MNIST (31 MB)"
    if job is None or job.ended:
        with explained("Fashion-MNIST was not fetched"):
            if st.button(label, icon=":material/download:", key="fetch_data"):
                engine().submit(FETCH, lane="lab", owner=visitor())
                job = _job()
    if job is None:
        return
    if not job.ended and job.owner == visitor():
        job_panel.cancel_button(job, "cancel_fetch")
    job_panel.follow(job, "Fetching", _show)


def _job() -> Job | None:
    """The download in progress, of any visitor; or else this visitor's last one."""
    going_on = [job for job in engine().jobs(FETCH) if not job.ended]
    return next(iter(going_on or engine().jobs(FETCH, visitor())[-1:]), None)


def _show(job: Job) -> None:
    cancelled = words("dataset.cancelled")
    job_panel.ended_badly(job, "Fashion-MNIST was not fetched", cancelled)
    if job.status == "finished":
        st.success("Fashion-MNIST has arrived and is being checked.")
        _show_when_checked()
    elif not job.ended and (now := job_panel.latest(job, Download)):
        share = min(1.0, now.done_bytes / now.total_bytes)
        done, total = map(format.size, (now.done_bytes, now.total_bytes))
        st.progress(share, f"Fetching Fashion-MNIST: {done} of {total}")
    elif not job.ended:
        st.progress(0.0, "Waiting for the server to send Fashion-MNIST")


@st.fragment(run_every=polling.POLL_SECONDS)
def _show_when_checked() -> None:
    """Redraw the page as soon as the workers have checked the data."""
    if is_here(engine().machine()):
        st.rerun()
