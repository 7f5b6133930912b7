"""A long job on a page: start and cancel it, follow it, see the newest result.

A panel shows the visitor's newest job, so results survive a reload and are the same in
all tabs. Visitors without a job see this machine's newest measurement.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import streamlit as st

from core.jobs.engine import TRAIN_LANE
from core.jobs.job import Job
from core.jobs.measurements import KINDS
from core.ui import clicks, format, last_measurement, polling, spoilers
from core.ui.server import engine, engine_problem, visitor
from to_device.errors import ExplainedError
from to_device.words import Words

words = Words(__file__)
Draw = Callable[[Job], object]
Event = TypeVar("Event")


@dataclass(frozen=True)
class JobPanel:
    """Starts, follows, and shows the visitor's jobs that call one function."""

    address: str  # the function that the jobs call
    job_name: str  # the subject of sentences about a job, such as "The race"
    key: str  # key of the start button; Cancel's key has "cancel_" before it
    icon: str = ":material/timer:"
    primary: bool = True  # False if the page has a more important button
    # Whether to show a job that has these arguments
    about: Callable[..., bool] = lambda *_: True
    failed: str = ""  # the title after a failure; default: `job_name` and "failed"
    cancelled: str = "Canceled. The measurements so far are still here."
    lane: str = "train"
    # Whether people may start a job while their job with other arguments goes on
    several: bool = False
    # The id of a run, to show only measurements of its model; None: all measurements
    subject: str | None = None
    measures: bool = False  # results are stored, and shown to visitors without a job

    def __post_init__(self) -> None:
        if self.measures:
            KINDS.add(self.address)

    @property
    def _jobs(self) -> list[Job]:
        return engine().jobs(self.address, visitor())[::-1]

    @property
    def job(self) -> Job | None:
        return next((job for job in self._jobs if self.about(*job.arguments)), None)

    @property
    def before(self) -> Job | None:
        """This machine's newest measurement, for a visitor without a job."""
        if not self.measures:
            return None
        return last_measurement.newest(self.address, self.subject)

    @property
    def going_on(self) -> Job | None:
        """The visitor's job that hasn't ended and so blocks the start button."""
        blocks = self.about if self.several else lambda *_: True
        alive = (j for j in self._jobs if not j.ended and blocks(*j.arguments))
        return next(alive, None)

    @property
    def ran(self) -> bool:
        """Whether there is something to follow: a job or an earlier measurement."""
        return self.job is not None or self.before is not None

    def submit(self, *arguments: Any) -> None:
        """Queue a job, unless one is going on already, as after a double click.

        If the job is refused, the reason is shown beside the button.
        """
        if self.going_on:
            return
        try:
            engine().submit(self.address, *arguments, lane=self.lane, owner=visitor())
        except ExplainedError as error:
            st.session_state[f"refused_{self.key}"] = str(error)

    def start_button(
        self, label: str, arguments: tuple | None, key: str = "", **more: Any
    ) -> None:
        """Draw the button that queues a job; disabled if `arguments` is None."""
        options = {
            "type": "primary" if self.primary and not self.before else "secondary",
            "icon": self.icon,
            "key": key or self.key,
        }
        st.button(
            label,
            on_click=clicks.once,
            args=(self.submit, *(arguments or ())),
            disabled=arguments is None or self.going_on is not None,
            **options | more,
        )
        if refusal := st.session_state.pop(f"refused_{self.key}", ""):
            st.warning(refusal, icon=":material/block:")

    def cancel_button(self) -> None:
        if job := self.going_on:
            cancel_button(job, f"cancel_{self.key}")

    def buttons(self, label: str, arguments: tuple | None) -> None:
        self.cancel_button()
        if not self.going_on:
            self.start_button(label, arguments)

    def follow(
        self, draw: Draw, empty: str = "", waiting: Callable[[], None] | None = None
    ) -> bool:
        """Draw the visitor's newest job live, or the machine's newest measurement.

        Without either, draws the text `empty`, and returns False. While the job is in
        the queue, `waiting` draws what stands below its place.
        """
        going_on, job = self.going_on, self.job
        if going_on and (job is None or going_on.id != job.id):
            icon = ":material/hourglass_top:"
            other = f"{self.job_name} is still running with other settings. "
            other += "Start again when it ends."
            follow(going_on, self.job_name, lambda _: st.info(other, icon=icon))
        if job is None:
            before = self.before
            if before is not None:
                last_measurement.tell(before)
                draw(before)
            elif empty:
                st.markdown(empty)
            return before is not None

        def with_end(job: Job) -> None:
            ended_badly(job, self.failed or f"{self.job_name} failed", self.cancelled)
            if job.status == "finished":
                ago = format.ago(time.time() - (job.stopped or job.submitted))
                slot(f"Done {ago}.", 1.0)
                if self.measures and not spoilers.is_student():
                    last_measurement.tell_clearer(job)
            draw(job)

        follow(job, self.job_name, with_end, waiting=waiting)
        return True


def cancel_button(job: Job, key: str, **more: Any) -> None:
    more |= {"on_click": clicks.once, "args": (engine().cancel, job.id)}
    st.button("Cancel", key=key, icon=":material/stop:", **more)


def follow(
    job: Job,
    job_name: str,
    draw: Draw,
    noun: str = "job",
    waiting: Callable[[], None] | None = None,
) -> None:
    """Draw a job live with `draw`, or its place in the queue while it waits.

    `draw` must call `slot` first. The place in the queue is drawn in a slot,
    too, so nothing below the slot moves when the job starts.
    """

    # An ended job is drawn in the fragment, too: elsewhere, its charts would flicker.
    @st.fragment
    def live() -> None:
        now = job if job.ended else engine().job(job.id)
        if now is None or now.ended != job.ended:
            st.rerun()
        polling.every(polling.interval(now))
        if now.status == "queued":
            slot(f"{place_in_queue(now)}. {job_name} will start automatically.")
        elif now.message and not now.ended:  # the message says why the job waits
            slot(f"{job_name}: {now.message}")
        if not now.ended and (problem := engine_problem()):
            title = f"Your {noun} is waiting because there are no workers"
            if now.status == "running":
                title = f"No worker responds, so your {noun} doesn't go on"
            st.error(problem, title=title)
        if now.status != "queued":
            draw(now)
        elif waiting:
            waiting()

    live()


def slot(text: str, share: float = 0.0) -> None:
    """Draw a line on how far a job is, or how it ended.

    The line has the same height in all cases, so nothing below it moves.
    """
    st.progress(share, text)


def place_in_queue(job: Job) -> str:
    """The job's place and estimated wait, or what else the job waits for."""
    if job.message:
        return job.message.rstrip(".")
    others = job.place - 1
    trains = job.lane == TRAIN_LANE
    text = words("queue.place", place=job.place)
    if not trains:  # what a teacher can pause is called the queue, and this can't be
        text = f"Number {job.place} in line"
    text += f": {others} ahead of you" if others else ": you're next"
    if engine().paused and trains:
        return ". ".join([text, words("queue.paused")])
    seconds = engine().wait(job.id)
    if seconds is None:
        return ". ".join([text, words("queue.unknown")])
    if seconds < 1:
        return f"{text}, in a moment"
    return f"{text}, about {format.roughly(seconds)}"


def reported(job: Job, kind: type[Event]) -> list[Event]:
    return [event for event in job.events if isinstance(event, kind)]


def latest(job: Job, kind: type[Event]) -> Event | None:
    return next((e for e in reversed(job.events) if isinstance(e, kind)), None)


def ended_badly(job: Job, failed: str, cancelled: str) -> None:
    """Say in a job's slot that it didn't finish, and why. `failed` is a title."""
    if job.status == "failed":
        slot(f"{failed}.")
        st.error(job.message, title=failed, icon=":material/error:")
    elif job.status == "cancelled":
        slot(f"Canceled. {job.message}" if job.message else cancelled)
    elif job.status == "interrupted":
        slot(job.message)
