"""What a page says where Fashion-MNIST is missing or damaged, and how it is fetched."""

import streamlit as st

from core.data.results import Download
from core.jobs.job import Job
from core.measure.environment import Machine
from core.ui import format, job_panel, looks
from core.ui.server import engine, explained, visitor

FETCH = "core.data.fashion_mnist:download"
CANCELLED = (
    "Cancelled. Files that had arrived whole stay; fetch the rest when you like."
)


def is_here(machine: Machine | None) -> bool:
    """Whether Fashion-MNIST can be trained on; taken for granted until it is known."""
    return machine is None or machine.fashion_mnist.usable


def default_task(machine: Machine | None) -> str:
    """The task on images that this machine has the data for."""
    return "fashion-mnist" if is_here(machine) else "sprites"


def offer(machine: Machine) -> None:
    """Say what is the matter with the data, and offer to fetch it where that helps."""
    status = machine.fashion_mnist
    if status.problem:
        st.error(
            f"{status.problem} Until then, train on the sprites.",
            title="Fashion-MNIST can't be used",
            icon=":material/error:",
        )
    else:
        st.info(
            "Fashion-MNIST is not on this machine, so you train on the **sprites**: "
            "the same ten kinds of clothes, drawn by a program. Everything else is "
            "the same.",
            icon=":material/info:",
        )
    if status.named:
        st.markdown(
            "The folder is the one that `FASHION_MNIST_DIR` names. Correct the "
            "variable, or unset it and start the app again."
        )
        return
    job = _job()
    if job is None or job.ended:
        with explained("Fashion-MNIST was not fetched"):
            if st.button(
                "Fetch Fashion-MNIST (31 MB)",
                icon=":material/download:",
                key="fetch_data",
            ):
                engine().submit(FETCH, lane="lab", owner=visitor())
                job = _job()
    if job is None:
        return
    if not job.ended and job.owner == visitor():
        job_panel.cancel_button(job, "cancel_fetch")
    job_panel.follow(job, "Fetching", _show)


def _job() -> Job | None:
    """The fetching that goes on, whoever started it; else the last of this visitor."""
    going_on = [job for job in engine().jobs(FETCH) if not job.ended]
    return next(iter(going_on or engine().jobs(FETCH, visitor())[-1:]), None)


def _show(job: Job) -> None:
    job_panel.ended_badly(job, "Fashion-MNIST was not fetched", CANCELLED)
    if job.status == "finished":
        st.success("Fashion-MNIST has arrived and is being checked.")
        _show_when_checked()
    elif not job.ended:
        now = job_panel.latest(job, Download)
        if now is not None:
            share = min(1.0, now.done_bytes / now.total_bytes)
            done, total = map(format.size, (now.done_bytes, now.total_bytes))
            st.progress(share, f"Fetching Fashion-MNIST: {done} of {total}")
        else:
            st.progress(0.0, "Asking the mirror for Fashion-MNIST")


@st.fragment(run_every=looks.POLL_SECONDS)
def _show_when_checked() -> None:
    """Draw the page anew as soon as the workers have seen the data."""
    if is_here(engine().machine()):
        st.rerun()
