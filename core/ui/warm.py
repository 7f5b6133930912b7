"""What the server does before its first visitor comes, who would wait for it else."""

import gc
import importlib
import pkgutil
import socket
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


def send_at_once() -> None:
    """Have what the server sends leave it at once, in small packets too.

    asyncio turns Nagle's algorithm off only for sockets that say they are TCP, which
    the one that Streamlit listens on does not. So each answer on a connection that is
    kept waited 40 ms for the browser to confirm the packet before it. What connects
    to a listening socket inherits the setting.
    """
    sockets = [each for each in gc.get_objects() if type(each) is socket.socket]
    for each in sockets:
        if each.family not in (socket.AF_INET, socket.AF_INET6) or each.fileno() < 0:
            continue
        if each.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


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
