"""A long job on a page: start and cancel it, follow it, see the newest result.

A panel belongs to one function that workers call. It shows the newest job of this
visitor, so that results survive a reload and are the same in all tabs. Who has none is
shown what was measured on this machine last, by whomever.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import streamlit as st

from core.errors import ExplainedError
from core.jobs.engine import PAUSED
from core.jobs.job import Job
from core.ui import format, looks, measured
from core.ui.server import engine, visitor

CANCELLED = "Cancelled. What was measured until then stays here."

Draw = Callable[[Job], None]
Event = TypeVar("Event")


def anything(*_arguments: Any) -> bool:
    return True


@dataclass(frozen=True)
class JobPanel:
    """The jobs of this visitor that call the function at `address`.

    Of those whose arguments are what the page is `about`; without it, of all of them.
    """

    address: str
    what: str  # how sentences about it begin: "The race"
    key: str  # of the start button; that of Cancel is made of it
    icon: str = ":material/timer:"
    primary: bool = True  # not where a view has a more important button
    about: Callable[..., bool] = anything
    failed: str = ""  # the title where it failed, if "The race failed" does not fit
    cancelled: str = CANCELLED
    lane: str = "train"
    several: bool = False  # whether one that is about something else may go on too
    subject: str | None = None  # of what was measured here before; None: of whatever

    @property
    def job(self) -> Job | None:
        """The newest."""
        return self._newest(self._jobs())

    @property
    def before(self) -> Job | None:
        """What was measured on this machine last, for a visitor without a job."""
        return measured.newest(self.address, self.subject)

    @property
    def going_on(self) -> Job | None:
        """The one that has not ended, whatever it is about: after a reload too."""
        return self._unfinished(self._jobs())

    @property
    def ran(self) -> bool:
        """Whether there is something to follow: a job, or what was measured here."""
        return self.job is not None or self.before is not None

    @property
    def code_title(self) -> str:
        """What the code is called that its jobs run, on a page that shows it."""
        return "The code that ran" if self.ran else "The code that will run"

    def _jobs(self) -> list[Job]:
        """All of this visitor, about whatever."""
        return engine().jobs(self.address, visitor())

    def _newest(self, jobs: list[Job]) -> Job | None:
        return next((job for job in reversed(jobs) if self.about(*job.arguments)), None)

    def _unfinished(self, jobs: list[Job]) -> Job | None:
        if self.several:
            jobs = [job for job in jobs if self.about(*job.arguments)]
        return next((job for job in reversed(jobs) if not job.ended), None)

    def submit(self, *arguments: Any) -> None:
        """Queue a job, unless one goes on: a double click comes twice.

        Why it is refused is shown beside the button.
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
        """The button that queues a job; without arguments there is nothing to start."""
        self._start(label, arguments, key, self.going_on is not None, **more)

    def _start(
        self,
        label: str,
        arguments: tuple | None,
        key: str,
        going_on: bool,
        **more: Any,
    ) -> None:
        options = {
            "type": "primary" if self.primary else "secondary",
            "icon": self.icon,
            "key": key or self.key,
        }
        st.button(
            label,
            on_click=self.submit,
            args=arguments,
            disabled=arguments is None or going_on,
            **options | more,
        )
        if why := st.session_state.pop(f"refused_{self.key}", ""):
            st.warning(why, icon=":material/block:")

    def cancel_button(self) -> None:
        """The button that ends the job, while there is one that goes on."""
        if job := self.going_on:
            cancel_button(job, f"cancel_{self.key}")

    def buttons(self, label: str, arguments: tuple | None, key: str = "") -> None:
        """Start; in its place, while a job goes on, Cancel."""
        if job := self.going_on:
            cancel_button(job, f"cancel_{self.key}")
        else:
            self._start(label, arguments, key, going_on=False)

    def follow(self, draw: Draw, empty: str = "") -> bool:
        """The newest job, drawn by `draw`, and above it how it ended badly.

        Without one, what was measured here last, and when that was and by whom. Answers
        whether there is either; if not, `empty` says what will appear.
        """
        jobs = self._jobs()
        job, going_on = self._newest(jobs), self._unfinished(jobs)
        if going_on and (job is None or going_on.id != job.id):
            follow(going_on, self.what, self._elsewhere)
        if job is None:
            if (before := self.before) is not None:
                measured.tell(before)
                draw(before)
            elif empty:
                st.markdown(empty)
            return before is not None

        def with_end(now: Job) -> None:
            ended_badly(now, self.failed or f"{self.what} failed", self.cancelled)
            if now.status == "finished":
                ago = format.ago(time.time() - (now.stopped or now.submitted))
                slot(f"Done {ago}.", 1.0)
            draw(now)

        follow(job, self.what, with_end)
        return True

    def _elsewhere(self, job: Job) -> None:
        """In the place of a job that goes on and that this page is not about."""
        if not job.ended:
            text = "is still running with other settings. You can start one after it."
            st.info(f"{self.what} {text}", icon=":material/hourglass_top:")


def cancel_button(job: Job, key: str, **more: Any) -> None:
    """The button that ends a job."""
    st.button(
        "Cancel",
        icon=":material/stop:",
        key=key,
        on_click=engine().cancel,
        args=(job.id,),
        **more,
    )


def follow(job: Job, what: str, draw: Draw, noun: str = "job") -> None:
    """Draw a job, live while it runs; before that its place in the queue.

    `draw` begins with a `slot`, while it runs and when it has ended, so that what is
    below stays where it is.
    """

    # Of one that has ended too: a chart in another place would be drawn anew.
    @st.fragment
    def live() -> None:
        now = job if job.ended else engine().job(job.id)
        if now is None or now.ended != job.ended:
            st.rerun()
        looks.every(looks.interval(now))
        if now.status == "queued":
            slot(f"{place_in_queue(now)}. {what} will start by itself.")
        elif now.message and not now.ended:  # why it has not begun
            slot(f"{what}: {now.message}")
        if engine().problem and not now.ended:
            title = f"There are no workers; your {noun} waits"
            st.error(engine().problem, title=title)
        if now.status != "queued":
            draw(now)

    live()


def slot(text: str, share: float = 0.0) -> None:
    """How far a job is, or how it ended; as high before, while and after it runs."""
    st.progress(share, text)


def place_in_queue(job: Job) -> str:
    """Where a job waits, and about how long, where the like was done here before.

    Or what else it waits for.
    """
    if job.message:
        return job.message.rstrip(".")
    others = job.place - 1
    text = f"Place {job.place} in the queue: "
    text += f"{others} before you" if others else "you're next"
    if engine().paused and job.lane == PAUSED:
        return f"{text}. Your teacher has paused the queue; you keep your place"
    seconds = engine().wait(job.id)
    if seconds is None or seconds < 1:
        return text
    about = f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
    return f"{text}, about {about}"


def reported(job: Job, kind: type[Event]) -> list[Event]:
    """What a job has reported of a kind, in order."""
    return [event for event in job.events if isinstance(event, kind)]


def latest(job: Job, kind: type[Event]) -> Event | None:
    """The newest that a job has reported of a kind."""
    return next((e for e in reversed(job.events) if isinstance(e, kind)), None)


def ended_badly(job: Job, failed: str, cancelled: str = CANCELLED) -> None:
    """The slot of a job that did not come to its end; `failed` is a title."""
    if job.status == "failed":
        slot(f"{failed}.")
        st.error(job.message, title=failed, icon=":material/error:")
    elif job.status == "cancelled":
        slot(cancelled)
