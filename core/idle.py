"""What the server measures by itself while nobody needs the workers."""

import logging
import os
import time
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from core.home import first_run_page as first_run
from core.jobs.job import Job
from core.jobs.measurements import environments
from core.lessons.compare.race_page import RaceLab
from core.lessons.compare.step_profile_page import StepProfileLab
from core.lessons.compare.timing_pitfalls_page import TimingPitfalls
from core.lessons.device.parallel_page import Parallel
from core.lessons.model.transfers_page import TransfersLab
from core.lessons.speed.copies_page import Copies
from core.lessons.speed.memory_page import Memory
from core.lessons.speed.vectorize_page import Vectorize
from core.measure.environment import Machine
from core.measure.speedup import BUSY
from core.registry import PACE
from core.ui import dataset, last_measurement, runs
from core.ui.lab import Lab
from core.ui.server import engine, room

QUIET_SECONDS = 20.0  # measuring begins when the app has had no jobs for this long
GIVE_WAY_SECONDS = 0.1  # between two looks for a visitor's job
ATTEMPTS = 3  # how often to measure if the machine is too busy for a clear result
LABS: tuple[type[Lab], ...] = (  # what is quick, in the order in which it is measured
    RaceLab,
    TimingPitfalls,
    StepProfileLab,
    Parallel,
    TransfersLab,
    Memory,
    Vectorize,
    Copies,
)
OFF = ("0", "false", "no", "off")

logger = logging.getLogger(__name__)


def measure(here: Machine) -> None:
    """When the app idles, measure what is quick and not yet measured with this torch.

    The server runs each lab (a measurement on a page) in LABS, a training run for
    Home, and some steps of each recipe, which tell how long a run will take. It
    measures nothing on workers that other apps may share, since those apps' jobs
    couldn't go first.
    """
    switched_off = os.environ.get("MEASURE_WHEN_IDLE", "1").lower() in OFF
    if switched_off or "DASK_SCHEDULER_ADDRESS" in os.environ:
        return
    work_off(_missing(here))


def _missing(here: Machine) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Yield each job whose result is still missing when the job's turn comes."""
    task = dataset.default_task(here)
    if not runs.idle_run(task):  # Home shows this run
        yield runs.RUN, (first_run.quick(here, 0),)
    of_labs = ((lab.address, lab.defaults(here)) for lab in labs())
    for address, arguments in chain([(PACE, (task,))], of_labs):
        newest = last_measurement.newest(address)
        versions = {e.torch for e in environments(newest.value)} if newest else set()
        if versions != {here.devices[0].torch} or (newest and is_unclear(newest)):
            yield address, arguments


def labs() -> list[Lab]:
    return [kind() for kind in LABS]


def was_busy(job: Job) -> bool:
    """Whether the job's result says that the machine was too busy to measure."""
    lab = next((lab for lab in labs() if lab.address == job.address), None)
    finding = lab.finding(lab.gather(job)) if lab else None
    return finding is not None and BUSY in finding.sentence


def is_unclear(job: Job) -> bool:
    """Whether to measure again. An open class may be guessing what the result is."""
    return room().open is None and was_busy(job)


def is_guessed(address: str) -> bool:
    """Whether an open class may be guessing what has been measured already."""
    return room().open is not None and last_measurement.newest(address) is not None


def work_off(jobs: Iterable[tuple[str, tuple[Any, ...]]]) -> None:
    """Run each job while no visitor has a job; cancel it when a visitor submits one.

    A canceled job is tried again later, and so is a measurement for which the machine
    was too busy, unless a class has opened that may be guessing the result. Returns
    when all jobs have ended.
    """
    was_disturbed = True
    for address, arguments in jobs:
        status, attempts = "", 0
        while status in ("", "cancelled"):
            since = time.monotonic()
            while was_disturbed and time.monotonic() < since + QUIET_SECONDS:
                time.sleep(GIVE_WAY_SECONDS)
                since = since if engine().is_idle() else time.monotonic()
            if is_guessed(address):
                break
            job_id = engine().submit(address, *arguments)
            while (job := engine().job(job_id)) is not None and not job.ended:
                if not engine().is_idle(but=job_id) or is_guessed(address):
                    engine().cancel(job_id)
                time.sleep(GIVE_WAY_SECONDS)
            status = job.status if job else "forgotten"
            was_disturbed = status == "cancelled"
            attempts += status == "finished"
            if job and status == "finished" and attempts < ATTEMPTS and is_unclear(job):
                status, was_disturbed = "", True
            if job and status == "failed":
                logger.warning("%s failed during idle time: %s", address, job.message)
