"""Why a job has not begun, where that is not for want of its turn."""

import time
from typing import NamedTuple

from core.errors import quoted
from core.jobs.connection import Connection
from core.jobs.job import Job, on

NO_WORKER_SECONDS = 90.0  # where there is no worker by then, the job has failed

SHARED = "Another app is using the workers; yours starts when they're free."
AWAY = "The machine {} has no worker right now; the run waits a while for one."
GONE = (
    "The machine {} has no workers. Choose another machine, or Any, and start the run "
    "again."
)


class Wait(NamedTuple):
    """What whoever waits is told, and whether there is no use in it."""

    message: str = ""
    is_vain: bool = False


def reason(job: Job, connection: Connection) -> Wait:
    """Of a job that waits, or that no worker has begun with."""
    roster = connection.roster
    if job.status == "starting":
        waited = time.time() - (job.started or time.time())
        without = max(map(roster.seconds_without, job.resources))
        if min(waited, without) > NO_WORKER_SECONDS:
            return Wait(connection.no_worker, True)
        return Wait(SHARED if connection.is_shared(job.id) else "")
    for host in job.hosts if connection.is_up else ():
        if not roster.capacity[on(host)]:
            waited = min(time.time() - job.submitted, roster.seconds_without(on(host)))
            is_vain = waited > NO_WORKER_SECONDS
            return Wait((GONE if is_vain else AWAY).format(quoted(host)), is_vain)
    return Wait()
