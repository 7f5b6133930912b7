"""Polling: after how many seconds the browser asks for a fragment of a page again.

The interval of `st.fragment(run_every=…)` changes only when the whole page is redrawn,
which takes the server some 30 ms. The browser accepts a new interval at any time, so a
fragment sends the interval until its next poll.
"""

from core.jobs.job import Job
from core.serving import streamlit_internals
from core.ui.server import count_of_tabs, visitor

RUN_SECONDS = 0.2  # for the visitor's own run: a poll takes the server some 10 ms
POLL_SECONDS = 1.0  # for other jobs: a poll with an Altair chart takes up to 100 ms
PATIENT_SECONDS = 3.0  # for other people's jobs, and for jobs that aren't next in line
# A long queue moves up by at most so many places a second, so the later a job's turn
# comes, the less often it is polled. If 500 tabs waited, and each asked every 3 s, that
# alone would keep the server busy.
PLACES_A_SECOND = 10.0
# How often all tabs together ask for what each of them shows: a fifth of a core, and
# somewhat more if some addresses have many more tabs than others
ALL_A_SECOND = 50.0


def fragment() -> str:
    """The id of the fragment that is being drawn; "" outside of fragments."""
    return streamlit_internals.fragment_id()


def every(seconds: float | None, fragment_id: str = "") -> None:
    """Set the interval of a fragment, by default of the one that is being drawn.

    If `seconds` is None, the browser stops asking for the fragment. The browser ignores
    an interval that it has already.
    """
    streamlit_internals.set_interval(fragment_id or fragment(), seconds)


def interval(job: Job, going_on: float = POLL_SECONDS) -> float | None:
    """How often this visitor polls a job, in seconds; None after the job has ended.

    `going_on` is the interval once the visitor's own job has a worker. The first job in
    the queue is polled often, since there is only one such job.
    """
    if job.ended:
        return None
    if job.owner not in ("", visitor()) or job.place > 1:
        return max(PATIENT_SECONDS, job.place / PLACES_A_SECOND)
    return POLL_SECONDS if job.place else going_on


def shared(seconds: float) -> float:
    """An interval for what all open tabs poll; with many tabs, more than `seconds`."""
    return max(seconds, count_of_tabs() / ALL_A_SECOND)
