"""What the server does by itself so that the first visitor doesn't wait.

It imports the pages, asks the workers what pages open with, and measures while nobody
needs the workers.
"""

import importlib
import logging
import os
import pkgutil
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Any

import core
from core.config import IMAGE_TASKS, SIMULATED
from core.errors import ExplainedError
from core.home import first_run_page as first_run
from core.jobs.measurements import environments
from core.lessons.device import machine_page as machine
from core.lessons.evaluate import evaluation_page as evaluation
from core.lessons.model import batch_steps_page as batch_steps
from core.lessons.model import default_device_page
from core.lessons.model import model_to_page as model_to
from core.measure.environment import Machine
from core.serving import garbage
from core.ui import dataset, last_measurement, runs, wall
from core.ui.lab import all_labs
from core.ui.server import ask_once, engine

LOOK_SECONDS = 0.2
IDLE_SECONDS = 20.0  # without any job, before something is measured
GIVE_WAY_SECONDS = 0.1  # a visitor waits this long, and for one batch
OFF = ("0", "false", "no", "off")

logger = logging.getLogger(__name__)


def load() -> None:
    """Import the modules of all pages, and exempt them from garbage collection."""
    for module in pkgutil.walk_packages(core.__path__, "core."):
        if module.name.startswith("core.ui.") or module.name.endswith("_page"):
            importlib.import_module(module.name)
    all_labs()  # a job's measurement is stored even before its page is opened
    garbage.freeze()


def warm_up() -> None:
    while (here := engine().machine()) is None:
        if engine().problem:
            return
        time.sleep(LOOK_SECONDS)
    ask(here)
    measure(here)


def ask(here: Machine) -> None:
    """Ask the workers for what pages open with, and leave errors to visitors."""
    device = SIMULATED if here.simulates else here.devices[0].device
    task = dataset.default_task(here)
    questions: tuple[Callable[[], object], ...] = (
        machine.facts,
        machine.devices,
        machine.answers,
        *([machine.simulated_answers] if here.simulates else []),
        default_device_page.default_device,
        partial(model_to.ask, "core.lessons.model.model_to:optimizer_findings", device),
        partial(ask_once, model_to.ATTEMPT, device, model_to.MOVES),
        partial(ask_once, batch_steps.BATCH, task, "ann", device, 0, 1),
        *(partial(ask_once, evaluation.IMAGES, each, (0,)) for each in IMAGE_TASKS),
        *(partial(wall.images, each) for each in IMAGE_TASKS),
    )
    for question in questions:
        with suppress(ExplainedError):
            question()


def measure(here: Machine) -> None:
    """When the app idles, measure what is quick and not yet measured with this torch.

    These are the labs with `idle`, and a run for Home. Nothing is measured on workers
    that other apps may share, since their jobs couldn't go first.
    """
    switched_off = os.environ.get("MEASURE_WHEN_IDLE", "1").lower() in OFF
    if switched_off or "DASK_SCHEDULER_ADDRESS" in os.environ:
        return
    missing = [
        (lab.address, lab.defaults(here))
        for lab in all_labs()
        if lab.idle and not _is_measured(lab.address, here)
    ]
    if not runs.idle_run(dataset.default_task(here)):
        missing.insert(0, (runs.RUN, (first_run.quick(here, 0),)))  # for Home to show
    work_off(missing)


def work_off(jobs: Iterable[tuple[str, tuple[Any, ...]]]) -> None:
    """Do each job on a "train" worker when it is idle: visitors' jobs go first.

    Returns when all have ended. Only a job that had to give way is tried again.
    """
    was_disturbed = True
    for address, arguments in jobs:
        status = ""
        while status in ("", "cancelled"):
            since = time.monotonic()
            while was_disturbed and time.monotonic() < since + IDLE_SECONDS:
                time.sleep(GIVE_WAY_SECONDS)
                since = since if engine().is_idle() else time.monotonic()
            job_id = engine().submit(address, *arguments)
            while (job := engine().job(job_id)) is not None and not job.ended:
                if not engine().is_idle(but=job_id):
                    engine().cancel(job_id)
                time.sleep(GIVE_WAY_SECONDS)
            status = job.status if job else "forgotten"
            was_disturbed = status == "cancelled"
            if job and status == "failed":
                logger.warning("%s failed during idle time: %s", address, job.message)


def _is_measured(address: str, here: Machine) -> bool:
    """Whether this torch has measured it; figures of an older torch don't count."""
    newest = last_measurement.newest(address)
    versions = {e.torch for e in environments(newest.value)} if newest else set()
    return versions == {here.devices[0].torch}
