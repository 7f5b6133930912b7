"""What is known of a job: plain data, without torch."""

from dataclasses import dataclass


@dataclass(frozen=True)
class PickedUp:
    """A worker has begun with a job; the first event of every job."""

    worker: str
