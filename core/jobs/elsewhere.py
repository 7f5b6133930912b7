"""A part of a job that a worker has another machine do, and waits for.

The engine keeps a worker of that machine free for it, see core.jobs.queue.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from core.errors import CancelledError, ExplainedError, quoted
from core.jobs.job import Outcome, on

LOOK_SECONDS = 1.0  # between two looks at whether the machine is still there
GONE_SECONDS = 20.0  # a worker that is started again is there by then
GONE = "The machine {} has no workers left."
LOST = "The worker process on {} ended during its part."


def call_on(
    host: str,
    function: Callable[..., Outcome],
    arguments: tuple[Any, ...],
    cancelled: Callable[[], bool],
) -> Any:
    """The value of the outcome that a training worker of that machine has.

    CancelledError where it was cancelled, there or here; ExplainedError where it
    failed, or where the worker ends or its machine has gone.
    """
    from distributed import get_client, wait
    from distributed.scheduler import KilledWorker

    client, needs = get_client(), dict.fromkeys(("train", on(host)), 1)
    future = client.submit(function, *arguments, resources=needs, pure=False)
    seen = time.monotonic()
    try:
        while not future.done():
            with suppress(TimeoutError):
                wait(future, LOOK_SECONDS)
            if cancelled():
                raise CancelledError
            workers = client.scheduler_info(n_workers=-1)["workers"]
            if any(on(host) in each["resources"] for each in workers.values()):
                seen = time.monotonic()
            elif time.monotonic() > seen + GONE_SECONDS:
                raise ExplainedError(GONE.format(quoted(host)))
        # By the scheduler: a firewall may keep machines that train from each other.
        outcome = client.gather(future, direct=False)
    except KilledWorker as error:
        raise ExplainedError(LOST.format(quoted(host))) from error
    finally:
        future.release()
    if outcome.status == "cancelled":
        raise CancelledError
    return outcome.get()
