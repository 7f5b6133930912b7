"""Call a function in a process of its own, which may die without harm to anybody.

For what must not share a process with others: an error that poisons the GPU's context,
memory that runs out, a file that a stranger sent. On Linux and macOS a server process
that has imported torch forks such children in some hundredths of a second; on Windows
each one starts afresh.

Where there are process groups, whatever a child has started ends with it.
"""

import multiprocessing
import os
import signal
import sys
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from typing import Any

from core import log
from core.errors import ExplainedError
from core.jobs.address import outcome_of
from core.jobs.confinement import confine
from core.jobs.job import Outcome
from core.watch import Watch

SECONDS = 30.0


class ChildDiedError(ExplainedError):
    """The process ended before it could answer."""


def warm_up() -> None:
    """Start the server that forks the children, before somebody waits for one."""
    call("os:getpid", seconds=120)


def call(
    address: str,
    *arguments: Any,
    seconds: float = SECONDS,
    memory_bytes: int | None = None,
    hostile: bool = False,
) -> Any:
    """What the function at `address` returns for `arguments`, in a child.

    Raises ChildDiedError where the process dies or does not answer in time, and
    ExplainedError where the function fails.
    """
    child = Child(address, arguments, seconds, memory_bytes, hostile)
    try:
        if not child.pipe.poll(seconds):
            raise ChildDiedError(
                f"It took more than {seconds:.0f} seconds and was ended."
            )
        outcome: Outcome = child.receive()
    finally:
        child.end()
    return outcome.get()


class Child:
    """A process that calls the function at `address`.

    It sends what the function reports, then an Outcome. With `memory_bytes` it may take
    that much more than it has at its start, and gets a MemoryError beyond; macOS and
    Windows set no such limit. With `hostile`, for what a stranger sent, it also sees no
    GPU and writes no file, as core.jobs.confinement says.
    """

    def __init__(
        self,
        address: str,
        arguments: tuple[Any, ...] = (),
        seconds: float = SECONDS,
        memory_bytes: int | None = None,
        hostile: bool = False,
    ) -> None:
        """Start it; after a little more than `seconds` it ends by itself.

        What it logs is of the run that is worked on here.
        """
        context, run = _context(), log.current_run.get()
        self.pipe, its_end = context.Pipe(duplex=False)
        self._process = context.Process(  # type: ignore[attr-defined]
            target=_work,
            args=(its_end, run, address, arguments, seconds, memory_bytes, hostile),
            daemon=True,
        )
        self._process.start()
        its_end.close()  # so that the end of the child is the end of the pipe

    def receive(self) -> Any:
        """What it sends next; ChildDiedError where it has died instead."""
        try:
            return self.pipe.recv()
        except EOFError:
            self._process.join(5)
            how = _how(self._process.exitcode)
            raise ChildDiedError(f"Its process {how}.") from None

    def end(self) -> None:
        """End it and whatever it has started."""
        if hasattr(os, "killpg"):
            with suppress(ProcessLookupError):  # it had no time to make its group
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.join(5)
        self.pipe.close()


def _context() -> BaseContext:
    if sys.platform == "win32":
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    # distributed, since each child looks up its parent's main module, the cluster.
    # torch._dynamo, which torch imports by itself in the first step of an optimizer.
    context.set_forkserver_preload(
        ["torch", "torch._dynamo", "core.jobs.worker", "distributed"]
    )
    return context


def _work(
    pipe: Connection,
    run: str,
    address: str,
    arguments: tuple[Any, ...],
    seconds: float,
    memory_bytes: int | None,
    hostile: bool,
) -> None:
    """Runs in the child."""
    import torch

    log.set_up()
    log.current_run.set(run)
    torch.set_num_threads(1)  # never slow down a training run that is measured
    if hasattr(os, "setsid"):
        os.setsid()  # a group of its own
        signal.alarm(int(seconds) + 5)  # its last end, if the parent dies
    if sys.platform == "linux":
        _end_with_parent()
        if memory_bytes is not None:
            _limit_memory(memory_bytes)
    if hostile:
        confine()
    pipe.send(outcome_of(address, arguments, Watch(report=pipe.send)))


def _end_with_parent() -> None:
    """Let the kernel end this group when the parent does, however busy it is.

    The parent holds one end of a pipe until it ends; what happens at this end is
    signalled to the group.
    """
    import fcntl

    parent = multiprocessing.parent_process()
    assert parent is not None
    fcntl.fcntl(parent.sentinel, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(parent.sentinel, fcntl.F_SETOWN, -os.getpgrp())
    fcntl.fcntl(parent.sentinel, fcntl.F_SETFL, os.O_ASYNC)


def _limit_memory(more_bytes: int) -> None:
    import resource

    import psutil

    # RLIMIT_AS would count the files that libraries map, tens of gigabytes with CUDA.
    limit = psutil.Process().memory_info().data + more_bytes
    with suppress(ValueError):  # a lower limit is set already
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def _how(exitcode: int | None) -> str:
    """How a process ended, in words."""
    if exitcode is None:
        return "does not answer"
    if exitcode < 0:
        return f"was ended by {signal.Signals(-exitcode).name}"
    return f"ended with exit status {exitcode}"
