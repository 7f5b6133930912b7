"""What the server does by itself so that the first visitor doesn't wait.

It imports the pages, compresses the frontend's files, asks the workers for what pages
show first, and reads what errors mean. Then core.idle measures while nobody needs the
workers.
"""

import importlib
import pkgutil
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import core
from core import idle
from core.config import IMAGE_TASKS
from core.lessons.device import machine_page as machine
from core.lessons.evaluate import evaluation_page as evaluation
from core.lessons.model import batch_steps_page as batch_steps
from core.lessons.model import default_device_page
from core.lessons.model import model_to_page as model_to
from core.measure.environment import Machine
from core.serving import garbage, static_files
from core.ui import dataset, image_wall
from core.ui.server import ask_once, engine
from to_device.errors import ExplainedError
from to_device.explain.causes import knowledge
from to_device.names import SIMULATED

LOOK_SECONDS = 0.2  # between two checks whether the workers have started


def load() -> None:
    """Import the modules of all pages, and exempt them from garbage collection.

    Their labs' measurements are then stored even before their pages are opened.
    """
    for module in pkgutil.walk_packages(core.__path__, "core."):
        if module.name.startswith("core.ui.") or module.name.endswith("_page"):
            importlib.import_module(module.name)
    garbage.freeze()


def warm_up() -> None:
    static_files.compress_all()
    while (here := engine().machine()) is None:
        if engine().problem:
            return
        time.sleep(LOOK_SECONDS)
    ask(here)
    knowledge()
    idle.measure(here)


def ask(here: Machine) -> None:
    """Ask the workers for what pages show first. If that fails, the pages ask again."""
    device = SIMULATED if here.simulates else here.devices[0].device
    task = dataset.default_task(here)
    questions: tuple[Callable[[], object], ...] = (
        machine.facts,
        machine.devices,
        machine.answers,
        *([machine.simulated_answers] if here.simulates else []),
        default_device_page.default_device,
        partial(ask_once, model_to.FINDINGS, device),
        partial(ask_once, model_to.ATTEMPT, device, model_to.MOVES),
        partial(ask_once, batch_steps.BATCH, task, "ann", device, 0, 1),
        *(partial(ask_once, evaluation.IMAGES, name, (0,)) for name in IMAGE_TASKS),
        *(partial(image_wall.images, name) for name in IMAGE_TASKS),
    )
    for question in questions:
        with suppress(ExplainedError):
            question()
