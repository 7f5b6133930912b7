"""Measurements that the app makes by itself while no visitor needs the workers."""

import logging
import os
import time
from collections.abc import Iterable
from typing import Any

from core.jobs.engine import Engine
from core.jobs.measurements import environments
from core.measure.environment import Machine
from core.ui import last_measurement
from core.ui.lab import all_labs
from core.ui.server import engine

IDLE_SECONDS = 20.0  # without any job, before something is measured
GIVE_WAY_SECONDS = 0.1  # a visitor waits for this, and for a batch
OFF = ("0", "false", "no", "off")

logger = logging.getLogger(__name__)


def measure() -> None:
    """Measure in idle time what is quick and has no figures of this torch yet.

    Not on workers that other apps may share: those can't be given way to.
    """
    here = engine().machine()
    switched_off = os.environ.get("MEASURE_WHEN_IDLE", "1").lower() in OFF
    if here is None or switched_off or "DASK_SCHEDULER_ADDRESS" in os.environ:
        return
    missing = [
        (lab.address, lab.defaults(here))
        for lab in all_labs()
        if lab.idle and not _is_measured(lab.address, here)
    ]
    work_off(engine(), missing)


def work_off(
    engine: Engine,
    jobs: Iterable[tuple[str, tuple[Any, ...]]],
    idle_seconds: float = IDLE_SECONDS,
) -> None:
    """Do each job on a "train" worker, in idle time: visitors' jobs go first.

    Returns when all have ended. A job that had to give way is tried again; one that
    failed would fail again.
    """
    was_disturbed = True
    for address, arguments in jobs:
        status = ""
        while status in ("", "cancelled"):
            since = time.monotonic()
            while was_disturbed and time.monotonic() < since + idle_seconds:
                time.sleep(GIVE_WAY_SECONDS)
                since = since if engine.is_idle() else time.monotonic()
            job_id = engine.submit(address, *arguments)
            while (job := engine.job(job_id)) is not None and not job.ended:
                if not engine.is_idle(but=job_id):
                    engine.cancel(job_id)
                time.sleep(GIVE_WAY_SECONDS)
            status = job.status if job else "forgotten"
            was_disturbed = status == "cancelled"
            if job and status == "failed":
                logger.warning("%s failed in idle time: %s", address, job.message)


def _is_measured(address: str, here: Machine) -> bool:
    """Figures of an older torch don't count, though pages show them."""
    newest = last_measurement.newest(address)
    versions = {e.torch for e in environments(newest.value)} if newest else set()
    return versions == {here.devices[0].torch}
