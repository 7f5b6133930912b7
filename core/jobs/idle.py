"""What a server does by itself while nobody needs its workers.

So that pages of a fresh machine open with something measured. It is measured where
people's measurements are, on a "train" worker: the lab has a single thread, no GPU to
itself, and answers questions meanwhile, so its figures would not be this machine's.
That worker is what people want too, so everything here gives way to them at once.
"""

import logging
import time
from collections import deque
from collections.abc import Iterable
from typing import Any

from core.jobs.engine import Engine

logger = logging.getLogger(__name__)

IDLE_SECONDS = 20.0  # without any job: nobody is in the middle of something
LOOK_SECONDS = 0.1  # a person who comes waits for so long, and for a batch


def work_off(
    engine: Engine,
    jobs: Iterable[tuple[str, tuple[Any, ...]]],
    idle_seconds: float = IDLE_SECONDS,
) -> None:
    """Call each function, at its address and with its arguments, in idle time.

    Returns when all have ended. One that had to give way is tried again; one that
    failed is not: it would fail again.
    """
    todo = deque(jobs)
    if todo:
        _wait(engine, idle_seconds)
    while todo:
        address, arguments = todo[0]
        if _try(engine, address, arguments):
            todo.popleft()
        else:
            _wait(engine, idle_seconds)


def _wait(engine: Engine, seconds: float) -> None:
    """Until nobody has had a job for so long."""
    since = time.monotonic()
    while time.monotonic() < since + seconds:
        time.sleep(LOOK_SECONDS)
        if not engine.is_idle():
            since = time.monotonic()


def _try(engine: Engine, address: str, arguments: tuple[Any, ...]) -> bool:
    """Whether it came to its end, before somebody had a job too."""
    job_id = engine.submit(address, *arguments)
    while (job := engine.job(job_id)) is not None and not job.ended:
        if not engine.is_idle(but=job_id):
            engine.cancel(job_id)
        time.sleep(LOOK_SECONDS)
    if job is not None and job.status == "failed":
        logger.warning("%s failed in idle time: %s", address, job.message)
    return job is None or job.status != "cancelled"
