"""What one person may ask of the server, and all together: caps that `submit` keeps.

A class has to fit, each of a hundred with one run of up to a minute; and a script must
not queue hours of work, whatever cookies it sends.
"""

import os
from dataclasses import dataclass, fields
from typing import Self

from core.errors import ExplainedError
from core.jobs.estimates import Estimates
from core.jobs.job import Job
from core.jobs.queue import Queue

UNITS = ((3600, "an hour", "hours"), (60, "a minute", "minutes"))
SHORT_SECONDS = 60.0  # a job of up to that much finds room in a queue that is long


@dataclass(frozen=True)
class Limits:
    """Each is set by the environment variable of its name in capitals."""

    max_jobs_per_person: int = 4  # that wait or run
    max_waiting_jobs: int = 120  # in each lane
    max_waiting_seconds: int = 3600  # of work in each lane, beside short jobs
    max_job_seconds: int = 1200  # from when a worker takes it

    @classmethod
    def from_environment(cls) -> Self:
        """ExplainedError for what is no whole number above 0."""
        found = {}
        for field in fields(cls):
            name = field.name.upper()
            text = os.environ.get(name, "")
            if text and not (text.isascii() and text.isdigit() and int(text)):
                raise ExplainedError(
                    f"{name} must be a whole number above 0, not {text!r}."
                )
            if text:
                found[field.name] = int(text)
        return cls(**found)

    def check(self, job: Job, queue: Queue, estimates: Estimates) -> None:
        """ExplainedError where the job may not wait too; nothing is changed then.

        What the server does for itself, of no owner, has no caps: it comes once.
        """
        if not job.owner:
            return
        most = self.max_jobs_per_person
        if queue.of(job.turn_of) >= most:
            raise ExplainedError(
                f"You have {most} {'job' if most == 1 else 'jobs'} waiting or "
                "running, and nobody may have more here. Wait for one of them to "
                "end, or cancel one."
            )
        expected = estimates.seconds(job)
        if expected is not None and expected > self.max_job_seconds:
            raise ExplainedError(
                f"This would take about {spoken(expected)} here, and a job may take "
                f"{spoken(self.max_job_seconds)}. Choose less to do, such as fewer "
                "epochs."
            )
        waiting = queue.waiting(job.lane)
        if len(waiting) >= self.max_waiting_jobs:
            raise ExplainedError(
                f"{len(waiting)} jobs are waiting already, and the queue takes no "
                "more. Try again in a minute."
            )
        weight = estimates.weight(job)
        total = weight + sum(map(estimates.weight, waiting))
        if weight > SHORT_SECONDS and total > self.max_waiting_seconds:
            raise ExplainedError(
                f"With this, more than {spoken(self.max_waiting_seconds)} of work "
                f"would be waiting. What takes up to {spoken(SHORT_SECONDS)} still "
                "finds room: choose less to do, such as fewer epochs, or come back "
                "later."
            )

    def seconds(self, allowed: float | None) -> float:
        """How long a job may take where so much is allowed, or nothing is said."""
        return min(self.max_job_seconds, allowed or self.max_job_seconds)


class Gate:
    """What a class asks of the queue, beside the limits of the server: here nothing.

    The engine asks it with its lock, so that it must not wait.
    """

    @property
    def paused(self) -> bool:
        """Whether nobody's turn comes in the lane "train"; what runs there goes on."""
        return False

    def person(self, owner: str) -> str:
        """As whom an owner takes their turns."""
        return owner

    def seconds(self, owner: str) -> float | None:  # noqa: ARG002
        """How long a job of this owner may take; None: as long as any."""
        return None

    def admit(self, job: Job, expected: float | None) -> None:
        """ExplainedError where the job may not wait; else it counts as one that does.

        `expected` is how many seconds it will take, where that is known.
        """


def overdue(seconds: float) -> str:
    """What is said of a job that ran for longer than it may."""
    return (
        f"It was ended after {spoken(seconds)}, the longest that a job may take here. "
        "Choose less to do, such as fewer epochs."
    )


def spoken(seconds: float) -> str:
    """In whole seconds, minutes or hours."""
    for unit, one, many in UNITS:
        if seconds == unit:
            return one
        if seconds >= 2 * unit:
            return f"{seconds / unit:,.0f} {many}"
    return f"{seconds:.3g} seconds"
