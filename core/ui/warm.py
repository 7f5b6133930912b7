"""What the server does before its first visitor comes, who would wait for it else."""

import gc
import importlib
import pkgutil
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import core.ui
from core.config import IMAGE_TASKS
from core.errors import ExplainedError
from core.ui import dataset, machine
from core.ui.evaluate import evaluation
from core.ui.move import batch_steps, model_to
from core.ui.server import engine

LOOK_SECONDS = 0.2


def load() -> None:
    """Import what the pages import, and spare the garbage collector all of it.

    A full collection, which stops every page meanwhile, takes 0.1 s with what pandas,
    Altair and Dask have made, and microseconds without.
    """
    for module in pkgutil.walk_packages(core.ui.__path__, "core.ui."):
        importlib.import_module(module.name)
    gc.collect()
    gc.freeze()


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
        partial(batch_steps.batch, task, "ann", device, 1),
        *(partial(evaluation.pictures, each, (0,)) for each in IMAGE_TASKS),
    )
    for question in questions:
        with suppress(ExplainedError):
            question()
