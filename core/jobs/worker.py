"""Inside a worker process: warm up, do a job, and let its owner steer or cancel it.

A worker is a Dask worker process with the resource "train" or "lab". Dask loads this
module when the process starts, and calls `dask_setup`.

A job ends within one batch when it is canceled, or when its app or the scheduler is
gone. A worker sends only plain data, even about a failure: the web server must not have
to import torch to read an exception.

The web server unpickles what a worker sends, as Dask does with all results, so whoever
takes over a worker has the web server, too. That's why a worker itself never opens a
stranger's file or runs a stranger's code: its children do, whose answers are not
pickled (core.jobs.child_process and core.jobs.confined_code).
"""

import asyncio
import logging
import multiprocessing
import os
import pickle
import sys
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import replace
from typing import Any

from core import log
from core.jobs import hung
from core.jobs.job import Outcome, PickedUp, outcome_of
from core.watch import NO_CONTROL, Control, Watch
from to_device.names import SIMULATED

# The server that forks children starts this long after the worker, since people need
# workers first.
WARM_UP_SECONDS = 5.0
FORKS_SECONDS = 5.0  # between two looks at the server that forks children
STOPPED_SECONDS = 15.0  # a server of forks that is stopped for longer is replaced
# A low priority lets pages go first. Since one core stays free, training isn't slower.
NICE = 10
logger = logging.getLogger(__name__)
_simulating = threading.RLock()  # held while the simulated accelerator is used
_cancelled: set[str] = set()  # jobs to stop
_controls: dict[str, Control] = {}  # the newest, by the id of a job in this process


def dask_setup(worker: Any) -> None:
    """Do now what is slow the first time, so that the first click is quick."""
    import torch

    from core import devices
    from core.jobs import child_process, cluster, steady_clock
    from to_device.sim import simulation

    steady_clock.use()
    log.set_up()
    logging.getLogger("distributed.worker").addFilter(cluster.is_news)
    if hasattr(os, "nice"):  # not on Windows
        os.nice(NICE)
    # Dask spawned this process. If the process spawned its children, too, each
    # DataLoader worker would import torch for seconds. With the default method, they
    # start as in any script.
    multiprocessing.set_start_method(None, force=True)
    simulation.offer()
    if "train" in worker.state.total_resources:
        devices.leave_a_core()
        _rehearse()
    else:
        torch.set_num_threads(1)  # so as not to slow down a run that is measured
        # Heartbeats bring this to the app: see core.jobs.hosts.
        worker.metrics["forks"] = lambda _: _forks()
        keep = threading.Thread(target=_keep_forking, args=(child_process.warm_up,))
        keep.daemon = True
        keep.start()


def _keep_forking(warm_up: Callable[[], None]) -> None:
    """Start the server that forks children; replace it if it ends.

    Python starts a new server only when it needs one, and somebody would have to wait
    until that has loaded torch. And Python would wait forever for a stopped server.
    """

    def try_to_warm_up() -> None:
        with suppress(Exception):  # the next call tells why
            warm_up()

    def start_warming_up() -> threading.Thread:
        # In its own thread, since it would wait for a server that is stopped meanwhile.
        thread = threading.Thread(target=try_to_warm_up, daemon=True)
        thread.start()
        return thread

    time.sleep(WARM_UP_SECONDS)
    warming_up = start_warming_up()
    stopped = 0.0
    while sys.platform != "win32":
        time.sleep(FORKS_SECONDS)
        status = _forks()
        stopped = stopped + FORKS_SECONDS if status == "stopped" else 0.0
        if stopped >= STOPPED_SECONDS:
            logger.warning("the server of forks is stopped and will be replaced")
            _end_forks()
            status = "ended"
        if status == "ended" and not warming_up.is_alive():
            warming_up = start_warming_up()


def _forkserver_pid() -> int | None:
    from multiprocessing import forkserver

    return getattr(forkserver._forkserver, "_forkserver_pid", None)


def _forks() -> str:
    """Whether the server of forks is "stopped" or has "ended"; otherwise, ""."""
    import psutil

    pid = _forkserver_pid()
    try:
        status = psutil.Process(pid).status() if pid else ""
    except psutil.NoSuchProcess:
        return "ended"
    names = {psutil.STATUS_STOPPED: "stopped", psutil.STATUS_ZOMBIE: "ended"}
    return names.get(status, "")


def _end_forks() -> None:
    """End the server of forks, but not the children, which may be at work."""
    import psutil

    if pid := _forkserver_pid():
        with suppress(psutil.Error):
            psutil.Process(pid).kill()


def _rehearse() -> None:
    """Load the default dataset, and train one step, which sets up the device."""
    from core.config import RunConfig
    from core.data import datasets
    from core.training import Training

    task = "fashion-mnist" if datasets.status().usable else "sprites"
    split = datasets.load(task).train
    for _ in Training(RunConfig(task=task), split.first(64)).train_epoch():
        pass


def do(job_id: str, topic: str, address: str, arguments: tuple[Any, ...]) -> Outcome:
    """Call the function at `address`; its reports become the job's events."""
    from distributed import Status, get_worker

    from core import devices

    if not devices.usable(devices.resolve("auto")):
        # An earlier job broke the device for this process. This job has not begun, so
        # it goes to the process that the nanny starts instead.
        os._exit(1)

    worker = get_worker()
    key = worker.get_current_task()

    def cancelled() -> bool:
        # The job also ends if the scheduler or the app is gone. Dask doesn't stop a
        # running task that is canceled: it only marks the task.
        task = worker.state.tasks.get(key)
        is_open = worker.status in (Status.running, Status.paused)
        is_wanted = is_open and task is not None and task.state != "cancelled"
        return job_id in _cancelled or not is_wanted

    def report(event: Any) -> None:
        # Dask's event log takes bytes, not objects.
        worker.log_event(topic, pickle.dumps((job_id, event)))

    log.current_run.set(job_id)  # Dask gives each task a context of its own
    keep_threads()
    _controls[job_id] = NO_CONTROL
    report(PickedUp(worker.name))
    try:
        watch = Watch(report, cancelled, lambda: _controls[job_id])
        outcome = outcome_of(address, arguments, watch)
        return replace(outcome, machine=devices.identity())
    finally:
        _cancelled.discard(job_id)
        del _controls[job_id]
        _free_memory()


def answer(address: str, arguments: tuple[Any, ...]) -> Outcome:
    """Call a quick function, which reports nothing but its result."""
    keep_threads()
    # The whole process shares one count of copies and waits on the simulated
    # accelerator, so only one call at a time may use it.
    names = [argument for argument in arguments if isinstance(argument, str)]
    with _simulating if SIMULATED in names else nullcontext():
        return outcome_of(address, arguments)


def keep_threads() -> None:
    """Let torch use only the process's number of CPU threads in this thread.

    torch keeps this number for each thread. In a thread that hasn't set it, matrix
    products take all cores, and Dask runs jobs in threads of its own.
    """
    import torch

    torch.set_num_threads(torch.get_num_threads())


def cancel(job_id: str) -> None:
    _cancelled.add(job_id)


def steer(job_id: str, control: Control) -> None:
    """Keep what the owner has set last, which the job reads between two steps.

    What is older, or for a job that isn't running here, is dropped.
    """
    if job_id in _controls and control.number > _controls[job_id].number:
        _controls[job_id] = control


def kill(dask_worker: Any) -> None:
    """End a worker that hangs, and all processes that it started.

    The worker's nanny, the process with which Dask watches over it, calls this
    function and then starts a new worker.
    """
    hung.kill(dask_worker.pid)


async def kill_if_hung(dask_worker: Any) -> bool:
    """Like `kill`, unless the worker is only busy; returns whether it was killed."""
    # In a thread, since the nanny's event loop must not wait.
    if not await asyncio.to_thread(hung.hangs, dask_worker.pid):
        return False
    kill(dask_worker)
    return True


def _free_memory() -> None:
    import gc

    import torch

    gc.collect()
    if torch.accelerator.is_available() and hasattr(torch.accelerator, "empty_cache"):
        with suppress(RuntimeError):  # the device is broken: the next job will notice
            torch.accelerator.empty_cache()
