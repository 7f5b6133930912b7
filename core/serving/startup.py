"""Work done at startup so that the first visitor doesn't wait.

Imports, the answers that pages open with, and then measurements in idle time.
"""

import importlib
import pkgutil
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import core
from core.config import IMAGE_TASKS
from core.errors import ExplainedError
from core.lessons.device import machine_page as machine
from core.lessons.evaluate import evaluation_page as evaluation
from core.lessons.model import batch_steps_page as batch_steps
from core.lessons.model import model_to_page as model_to
from core.serving import garbage, idle_measuring
from core.ui import dataset, wall
from core.ui.lab import all_labs
from core.ui.server import engine

LOOK_SECONDS = 0.2


def load() -> None:
    """Import the modules of all pages, and exempt them from garbage collection."""
    for module in pkgutil.walk_packages(core.__path__, "core."):
        if module.name.startswith("core.ui.") or module.name.endswith("_page"):
            importlib.import_module(module.name)
    all_labs()  # a job's measurement is stored even before its page is opened
    garbage.freeze()


def warm_up() -> None:
    ask()
    idle_measuring.measure()


def ask() -> None:
    """Once the workers are up, ask them the questions that pages open with.

    An error is left to the visitor who asks again.
    """
    while (here := engine().machine()) is None:
        if engine().problem:
            return
        time.sleep(LOOK_SECONDS)
    device = here.devices[0].device
    other = device if len(here.devices) > 1 else "meta"
    task = dataset.default_task(here)
    questions: tuple[Callable[[], object], ...] = (
        machine.facts,
        machine.devices,
        machine.answers,
        machine.default_device,
        partial(model_to.ask, "core.lessons.model.model_to:optimizer_findings", other),
        partial(model_to.attempt, other, model_to.MOVES),
        partial(batch_steps.batch, task, "ann", device, 1),
        *(partial(evaluation.pictures, each, (0,)) for each in IMAGE_TASKS),
        *(partial(wall.images, each) for each in IMAGE_TASKS),
    )
    for question in questions:
        with suppress(ExplainedError):
            question()
