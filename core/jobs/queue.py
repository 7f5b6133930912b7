"""The order of jobs: who waits, in which place, and whose turn it is. Without Dask.

Each lane is a queue of its own, first come, first served. A job takes part until it is
removed: it waits, then it is taken and keeps a worker of its lane busy.
"""

from collections import Counter
from collections.abc import Mapping

from core.jobs.job import Job


class Queue:
    """Whoever uses it sees to it that only one thread does."""

    def __init__(self) -> None:
        self._waiting: dict[str, Job] = {}  # by their ids, in the order they came
        self._taken: dict[str, Job] = {}

    def add(self, job: Job) -> None:
        """Wait behind all others of its lane."""
        self._waiting[job.id] = job

    def __len__(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def place(self, job_id: str) -> int:
        """The job's place in its lane, from 1; 0 when it does not wait."""
        if job_id not in self._waiting:
            return 0
        lane = self._waiting[job_id].lane
        together = [job.id for job in self._waiting.values() if job.lane == lane]
        return together.index(job_id) + 1

    def next(self, capacity: Mapping[str, int]) -> Job | None:
        """The job whose turn it is, if a worker is free for it.

        `capacity` says how many jobs of each lane the workers take at once. A lane that
        has no worker just now counts for one: its worker is starting.
        """
        busy = Counter(job.lane for job in self._taken.values())
        for job in self._waiting.values():
            if busy[job.lane] < max(1, capacity.get(job.lane, 0)):
                return job
        return None

    def take(self, job: Job) -> None:
        """A worker gets this job."""
        self._taken[job.id] = self._waiting.pop(job.id)

    def remove(self, job_id: str) -> None:
        """The job has ended, if it ever was there."""
        self._waiting.pop(job_id, None)
        self._taken.pop(job_id, None)
