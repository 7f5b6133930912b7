"""What runs inside a worker process: warm up, do a job, hear that it is cancelled.

A worker is a Dask worker process with the resource "train" or "lab". Dask loads this
module when the process starts and calls `dask_setup`.

A job ends, at the latest in its next batch, when it is cancelled and when nobody waits
for it any more: the app that started it is gone, or the scheduler is, which a worker
does not outlive. So what still runs is what somebody knows of.

Nothing but plain data leaves a worker, failures included: the web server must not have
to import torch in order to read an exception.
"""

import logging
import multiprocessing
import os
import pickle
import threading
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from core import log
from core.jobs.address import outcome_of
from core.jobs.elsewhere import call_on
from core.jobs.job import Outcome, PickedUp
from core.jobs.roster import host_of
from core.measure.environment import Machine
from core.watch import Watch

WARM_UP_SECONDS = 5.0  # until the workers have started, which is what people wait for
# Where people look on while a model trains, the server's pages go first. A machine with
# a core to spare trains as fast.
NICE = 10
_cancelled: set[str] = set()  # jobs to stop; asked by running jobs in every batch


def dask_setup(worker: Any) -> None:
    """Pay for slow first times now, so that the first click does not."""
    import torch

    from core import devices
    from core.jobs import cluster, sandbox

    log.set_up()
    logging.getLogger("distributed.worker").addFilter(cluster.is_news)
    if hasattr(os, "nice"):  # not on Windows
        os.nice(NICE)
    # A process that was spawned spawns its own children too, and a DataLoader's workers
    # would take seconds each to import torch. They start as in a script of one's own.
    multiprocessing.set_start_method(None, force=True)
    if "train" in worker.state.total_resources:
        devices.leave_a_core()
        _rehearse()
    else:
        torch.set_num_threads(1)  # never slow down a training run that is measured
        warm_up = threading.Timer(WARM_UP_SECONDS, sandbox.warm_up)
        warm_up.daemon = True
        warm_up.start()


def _rehearse() -> None:
    """Load the default dataset and make one step, which sets up the device."""
    from core.config import RunConfig
    from core.data import datasets
    from core.training import Training

    task = "fashion-mnist" if datasets.status().usable else "sprites"
    split = datasets.load(task).train
    for _ in Training(RunConfig(task=task), split.first(64)).train_epoch():
        pass


def do(job_id: str, topic: str, address: str, arguments: tuple[Any, ...]) -> Outcome:
    """Call the function at `address`; what it reports becomes an event of the job."""
    from distributed import get_worker

    from core import devices

    if not devices.usable(devices.resolve("auto")):
        # An earlier job has spoiled it for this process. This job has not begun, so it
        # goes to the process that the nanny starts instead.
        os._exit(1)

    worker = get_worker()
    _report(worker, job_id, topic, PickedUp(worker.name))
    try:
        return replace(
            part(job_id, topic, address, arguments), machine=devices.identity()
        )
    finally:
        _cancelled.discard(job_id)
        _free_memory()


def part(job_id: str, topic: str, address: str, arguments: tuple[Any, ...]) -> Outcome:
    """Call the function for a job, which may be one that another worker does."""
    from distributed import get_worker

    worker = get_worker()
    key = worker.get_current_task()

    def cancelled() -> bool:
        return job_id in _cancelled or not _is_wanted(worker, key)

    def elsewhere(host: str, address: str, arguments: tuple[Any, ...]) -> Any:
        what = job_id, topic, address, arguments
        return call_on(host, part, what, cancelled)

    log.current_run.set(job_id)  # of this task: Dask gives each its own context
    keep_threads()
    report = partial(_report, worker, job_id, topic)
    watch = Watch(report, cancelled, host_of(worker.name), elsewhere)
    return outcome_of(address, arguments, watch)


def _report(worker: Any, job_id: str, topic: str, event: Any) -> None:
    # Dask's event log takes bytes, not objects.
    worker.log_event(topic, pickle.dumps((job_id, event)))


def _is_wanted(worker: Any, key: Any) -> bool:
    """Whether the scheduler is there and has a client that waits for the task.

    Dask does not stop a task that runs, but writes down that its result is not wanted.
    """
    from distributed import Status

    task = worker.state.tasks.get(key)
    is_open = worker.status in (Status.running, Status.paused)
    return is_open and task is not None and task.state != "cancelled"


def answer(address: str, arguments: tuple[Any, ...]) -> Outcome:
    """Call a quick function, without events."""
    keep_threads()
    return outcome_of(address, arguments)


def describe() -> Machine:
    """This worker's machine; not as a task, which would wait for a run to end."""
    from core import devices

    return devices.describe()


def keep_threads() -> None:
    """Hold this thread to the number of CPU threads that the process was given.

    Without it, matrix products take all cores until something else has asked torch in
    this thread: jobs run in threads of Dask's, not in the one that set the number.
    """
    import torch

    torch.set_num_threads(torch.get_num_threads())


def cancel(job_id: str) -> None:
    """Ask the job to stop; it hears of it in its next batch."""
    _cancelled.add(job_id)


def kill(dask_worker: Any) -> None:
    """End a worker that hears nothing, and all that it started; its nanny calls this.

    The nanny then starts a new one. A worker that hangs can't be asked to do this
    itself, and the processes of a DataLoader that hangs would outlive it.
    """
    import psutil

    process = psutil.Process(dask_worker.pid)
    for each in (*process.children(recursive=True), process):
        with suppress(psutil.NoSuchProcess):
            each.kill()


def _free_memory() -> None:
    """Give cached device memory back, so that the next job starts with all of it."""
    import gc

    import torch

    gc.collect()
    if torch.accelerator.is_available() and hasattr(torch.accelerator, "empty_cache"):
        with suppress(RuntimeError):  # it is spoiled, and the next job finds out
            torch.accelerator.empty_cache()
