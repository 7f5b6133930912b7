"""Call a function in its own process, which may die without harm to the caller.

Some things would harm a worker: an error that breaks the GPU's context, memory that
runs out, a stranger's file. On Linux and macOS, a server process that has imported
torch forks each child in some hundredths of a second. On Windows, each child
starts from scratch. Where there are process groups, a child's own children end
with the child.
"""

import ctypes
import multiprocessing
import os
import signal
import sys
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from typing import Any

from core import log
from core.jobs.job import Outcome, outcome_of
from core.watch import Watch
from to_device.errors import ExplainedError
from to_device.names import NO_DEVICES

SECONDS = 30.0

# Numbers of <linux/landlock.h> and <sys/prctl.h>, the same on all processors.
CREATE_RULESET, RESTRICT_SELF = 444, 446
SET_NO_NEW_PRIVILEGES = 38
READ_FILES_AND_FOLDERS = 1 << 2 | 1 << 3
# How many rights on files each version of Landlock has
FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}
ALL_FILE_RIGHTS = 16  # since version 5
NETWORK_RIGHTS = 1 << 0 | 1 << 1  # to bind and to connect TCP, since version 4
# Since version 6: to connect to others' abstract sockets, and to signal others
SCOPES = 1 << 0 | 1 << 1


class ChildDiedError(ExplainedError):
    """The process ended before it could answer."""


def warm_up() -> None:
    """Start the server that forks the children."""
    call("os:getpid", seconds=120)


def call(
    address: str,
    *arguments: Any,
    seconds: float = SECONDS,
    memory_bytes: int | None = None,
    hostile: bool = False,
) -> Any:
    """Call the function at `address` in a child; returns its result.

    Raises ChildDiedError if the process dies or doesn't answer in time, and
    ExplainedError if the function fails.
    """
    child = Child(address, arguments, seconds, memory_bytes, hostile)
    try:
        if not child.pipe.poll(seconds):
            raise ChildDiedError(
                f"The process took more than {seconds:.0f} seconds and was stopped."
            )
        outcome: Outcome = child.receive()
    finally:
        child.end()
    return outcome.get()


def call_for(seconds: float, address: str, *arguments: Any) -> Any:
    """Like `call`, for `Engine.ask`, which passes no keyword arguments."""
    return call(address, *arguments, seconds=seconds)


class Child:
    """A process that calls the function at `address`.

    The process sends what the function reports, then an Outcome. On Linux, the process
    may take `memory_bytes` more memory than at its start. With `hostile`, for a
    stranger's file, the process gives up rights: see `confine`.
    """

    def __init__(
        self,
        address: str,
        arguments: tuple[Any, ...],
        seconds: float,
        memory_bytes: int | None = None,
        hostile: bool = False,
    ) -> None:
        """Start the process; after a little more than `seconds`, it ends by itself.

        The process's log lines have the id of the caller's run.
        """
        context, run = _context(), log.current_run.get()
        self.pipe, writing = context.Pipe(duplex=False)
        self._process = context.Process(  # type: ignore[attr-defined]
            target=_work,
            args=(writing, run, address, arguments, seconds, memory_bytes, hostile),
            daemon=True,
        )
        self._process.start()
        writing.close()  # so that the pipe ends when the child does

    def receive(self) -> Any:
        """The process's next report. Raises ChildDiedError if it has died instead."""
        try:
            return self.pipe.recv()
        except EOFError:
            self._process.join(5)
        status = self._process.exitcode
        end = f"exited with status {status}"
        if status is None:
            end = "does not respond"
        elif status < 0:
            name, meaning = signal.Signals(-status).name, signal.strsignal(-status)
            end = f"was killed by {name} ({meaning})"
        raise ChildDiedError(f"The process {end}.")

    def end(self) -> None:
        if hasattr(os, "killpg"):
            with suppress(ProcessLookupError):  # the child had no time to make a group
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.join(5)
        self.pipe.close()


def _context() -> BaseContext:
    if sys.platform == "win32":
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    # Without the preload, each child would import these modules itself. A child imports
    # its parent's main module, which needs distributed. An optimizer's first step needs
    # torch._dynamo.
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
    """Runs in the child: calls the function, and sends its Outcome."""
    import torch

    log.set_up()
    log.current_run.set(run)
    torch.set_num_threads(1)  # so as not to slow down a run that is measured
    if hasattr(os, "setsid"):
        os.setsid()  # a process group, so that `end` also ends the child's children
        signal.alarm(int(seconds) + 5)  # in case the parent dies
    if sys.platform == "linux":
        _end_with_parent()
        if memory_bytes is not None:
            _limit_memory(memory_bytes)
    if hostile:
        confine()
    pipe.send(outcome_of(address, arguments, Watch(report=pipe.send)))


def _end_with_parent() -> None:
    """Have the kernel kill this process group when the parent process ends.

    The parent holds one end of a pipe. When that end closes, the group gets
    SIGKILL, which ends even busy processes.
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


def confine() -> None:
    """Give up rights for good: this process sees no GPU, writes no file, dumps no core.

    Since Linux 5.13, it can't start programs or create files, either; since 6.7, it
    can't open TCP connections; since 6.12, it can't send signals to others. Reading
    files and UDP stay possible. On macOS, MPS can't be hidden; on Windows, the process
    gives up only the devices.
    """
    hide_devices()
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        with suppress(OSError):  # a kernel without Landlock
            _restrict_files_and_network()


def hide_devices() -> None:
    os.environ.update(NO_DEVICES)


class _Ruleset(ctypes.Structure):
    """Rights that Landlock forbids.

    Rules could grant exceptions, but the app adds no rules.
    """

    _fields_ = [
        ("files", ctypes.c_uint64),
        ("network", ctypes.c_uint64),
        ("scopes", ctypes.c_uint64),
    ]


def _restrict_files_and_network() -> None:
    """Use Landlock, with which a process confines itself without being root."""
    libc = ctypes.CDLL(None, use_errno=True)

    def checked(result: int) -> int:
        if result < 0:
            raise OSError(ctypes.get_errno(), "Landlock is not available")
        return result

    version = checked(libc.syscall(CREATE_RULESET, None, ctypes.c_size_t(0), 1))
    rights = (1 << FILE_RIGHTS.get(version, ALL_FILE_RIGHTS)) - 1
    ruleset = _Ruleset(
        rights & ~READ_FILES_AND_FOLDERS,
        NETWORK_RIGHTS if version >= 4 else 0,
        SCOPES if version >= 6 else 0,
    )
    # An older kernel knows only the first fields, and accepts the others if they are 0.
    size = ctypes.c_size_t(ctypes.sizeof(ruleset))
    handle = checked(libc.syscall(CREATE_RULESET, ctypes.byref(ruleset), size, 0))
    try:
        checked(libc.prctl(SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
        checked(libc.syscall(RESTRICT_SELF, handle, 0))
    finally:
        os.close(handle)
