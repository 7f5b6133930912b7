"""What the server does before its first visitor comes, who would wait for it else."""

import importlib
import os
import pkgutil
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import core.ui
from core.compare.candidates import candidates, default_pair, tell_apart
from core.compare.results import RACE_STEPS
from core.config import IMAGE_TASKS, RunConfig
from core.errors import ExplainedError
from core.jobs import idle
from core.jobs.measured import environments
from core.measure.environment import Machine
from core.ui import dataset, garbage, machine, measured, parallel
from core.ui.compare import race, step_profile, timing_pitfalls
from core.ui.evaluate import evaluation
from core.ui.home import wall
from core.ui.move import batch_steps, forgotten, model_to, transfers
from core.ui.server import engine
from core.ui.speed import copies, memory, vectorize

LOOK_SECONDS = 0.2
REPEATS = 5  # of the race
OFF = ("0", "false", "no", "off")


def load() -> None:
    """Import what the pages import, and spare the garbage collector all of it."""
    for module in pkgutil.walk_packages(core.ui.__path__, "core.ui."):
        importlib.import_module(module.name)
    garbage.spare_what_lives()


def up() -> None:
    """Ask and measure what pages open with."""
    ask()
    measure()


def ask() -> None:
    """Ask the workers what pages ask first, once they are up.

    What can't be answered is told to the visitor who asks it again.
    """
    while (known := engine().machine()) is None:
        if engine().problem:
            return
        time.sleep(LOOK_SECONDS)
    device = known.devices[0].device
    elsewhere = device if len(known.devices) > 1 else "meta"
    task = dataset.default_task(known)
    questions: tuple[Callable[[], object], ...] = (
        machine.facts,
        machine.devices,
        machine.answers,
        machine.default_device,
        partial(model_to.ask, "core.move.model_to:optimizer_findings", elsewhere),
        partial(forgotten.attempt, elsewhere, forgotten.MOVES),
        partial(batch_steps.batch, task, "ann", device, 1),
        *(partial(evaluation.pictures, each, (0,)) for each in IMAGE_TASKS),
        *(partial(wall.images, each) for each in IMAGE_TASKS),
    )
    for question in questions:
        with suppress(ExplainedError):
            question()


def measure() -> None:
    """Measure in idle time what is quick and was never measured here with this torch.

    Not where the workers may belong to others too, who can't be given way to.
    """
    known = engine().machine()
    switched_off = os.environ.get("MEASURE_WHEN_IDLE", "1").lower() in OFF
    if known is None or switched_off or "DASK_SCHEDULER_ADDRESS" in os.environ:
        return
    missing = [job for job in quick(known) if not _is_measured(job[0], known)]
    idle.work_off(engine(), missing)


def quick(here: Machine) -> list[tuple[str, tuple[Any, ...]]]:
    """What takes seconds to measure: functions and their arguments."""
    task = dataset.default_task(here)
    config = RunConfig.with_recipe(task=task, epochs=1)
    pair = tell_apart(*default_pair(candidates(here)))
    device = here.devices[0].device
    profiled = step_profile.wanted(task, "ann", [each.device for each in here.devices])
    return [
        (race.PANEL.address, (config, pair, RACE_STEPS[config.model], REPEATS)),
        (transfers.PANEL.address, (device,)),
        (parallel.PANEL.address, (device,)),
        (timing_pitfalls.PANEL.address, (device,)),
        (step_profile.PANEL.address, profiled),
        (memory.LAB.panel.address, (device,)),
        (vectorize.LAB.panel.address, (device,)),
        (copies.LAB.panel.address, (device,)),
    ]


def _is_measured(address: str, here: Machine) -> bool:
    """Whether it was, with the torch that is here now; an older one is shown too."""
    found = measured.newest(address)
    if found is None:
        return False
    versions = {each.torch for each in environments(found.value)}
    return versions == {here.devices[0].torch}
