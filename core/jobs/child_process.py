"""Call a function in its own process, which may die without harm to the caller.

Some things would harm a worker: an error that breaks the GPU's context, memory that
runs out, a stranger's file. On Linux and macOS, a server process that has imported
torch forks each child in some hundredths of a second. On Windows, each child
starts from scratch. Where there are process groups, a child's own children end
with the child.

The child answers in plain data: JSON of a limited size. The caller reads it as what the
function's annotation says that it returns, so an answer can't make the caller do
anything, whoever has written it.

Covered, for each child:
- a crash, a hang, and memory that runs out end the child, and are told in a sentence;
- an answer that is too large, unfinished, or of another type is told in a sentence.

Covered, for a child with `hostile`, in which a stranger's file is read (see `confine`):
- it sees no GPU and writes no file;
- on Linux, it has no pipe but its own;
- on Linux with Landlock, it also starts no program, opens no TCP connection, and reads
  no file besides those of Python, its packages, and the app's code;
- on Linux with libseccomp, it also opens no socket at all, starts no process, changes
  no other one, changes no file's rights or times, takes no memory that isn't counted,
  and leaves nothing in the kernel. So it can't ask the server of forks
  for a process that isn't confined.

Not covered:
- without Landlock and libseccomp, a bug in a library that reads a file lets the file
  read what the app's user may read;
- CPU time until the time limit;
- a function that runs a stranger's code, see core.jobs.confined_code;
- whether what an answer says is true. Its caller has to check that.
"""

import ctypes
import gc
import multiprocessing
import os
import signal
import stat
import struct
import sys
import sysconfig
import time
import typing
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import BaseContext
from pathlib import Path
from typing import Any, Literal

from core import log
from core.errors import explain
from core.folders import DATA, ROOT
from core.jobs import seccomp
from core.jobs.job import Outcome, outcome_of, resolve
from core.store import codec
from core.watch import UNWATCHED, Watch
from to_device.errors import ExplainedError, plain
from to_device.names import NO_DEVICES

SECONDS = 30.0
CANCEL_SECONDS = 0.2  # how often a caller that waits asks whether its job is canceled
# The longest answer. The longest one of the app, an opened picture, takes 1 MB.
MOST_BYTES = 4_000_000
MOST_OF_A_MESSAGE = 2_000  # characters of a sentence from a hostile child
LENGTH = struct.Struct("!Q")  # on a pipe of Linux or macOS, each answer begins with it
RESTART_SECONDS = 10.0  # how long a killed server of forks may take to be gone

# Numbers of <linux/landlock.h> and <sys/prctl.h>, the same on all processors.
CREATE_RULESET, RESTRICT_SELF = 444, 446
ADD_RULE, PATH_BENEATH = 445, 1
SET_NO_NEW_PRIVILEGES = 38
READ_FILES, READ_FOLDERS = 1 << 2, 1 << 3
# How many rights on files each version of Landlock has
FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}
ALL_FILE_RIGHTS = 16  # since version 5
# What a confined process may read of the system. torch reads about the processor.
SYSTEM_FILES = (
    *("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib"),
    *("/etc/ld.so.cache", "/etc/localtime", "/usr/share/zoneinfo"),
    *("/proc/cpuinfo", "/proc/meminfo", "/sys/devices/system/cpu"),
    *("/dev/null", "/dev/urandom"),
)
NETWORK_RIGHTS = 1 << 0 | 1 << 1  # to bind and to connect TCP, since version 4
# Since version 6: to connect to others' abstract sockets, and to signal others
SCOPES = 1 << 0 | 1 << 1


class ChildDiedError(ExplainedError):
    """The process ended before it could answer."""


class UnreadableAnswerError(ChildDiedError):
    """The process answered with something else than what was asked for."""

    def __init__(self) -> None:
        super().__init__("The process gave an answer that the app can't read.")


@dataclass(frozen=True)
class _Message:
    """What a child sends: a report, or, as its last message, how the call ended."""

    status: Literal["report", "finished", "failed"]
    value: Any = None
    message: str = ""


def warm_up() -> None:
    """Start the server that forks the children."""
    call("os:getpid", seconds=120)


def call(
    address: str,
    *arguments: Any,
    seconds: float = SECONDS,
    memory_bytes: int | None = None,
    hostile: bool = False,
    watch: Watch = UNWATCHED,
) -> Any:
    """Call the function at `address` in a child; returns its result.

    The result has the type of the function's annotation; without an annotation, it is
    what json.loads returns. Raises ChildDiedError if the process dies, doesn't answer
    in time, or answers with something else, and ExplainedError if the function fails.
    Once the job that `watch` belongs to is canceled, the process ends, and
    CancelledError is raised.
    """
    child = Child(address, arguments, seconds, memory_bytes, hostile)
    try:
        outcome = child.receive(seconds, watch)
    finally:
        child.end()
    if not isinstance(outcome, Outcome):
        raise UnreadableAnswerError
    return outcome.get()


def call_for(seconds: float, address: str, *arguments: Any) -> Any:
    """Like `call`, for `Engine.ask`, which passes no keyword arguments."""
    return call(address, *arguments, seconds=seconds)


class Child:
    """A process that calls the function at `address`.

    The process sends what the function reports, then an Outcome. On Linux, the process
    may take `memory_bytes` more memory than at its start. With `hostile`, for a
    stranger's file, the process gives up rights: see `confine`. `returns` is the type
    of the function's result, by default what its annotation says, and `reports` is the
    type of a report.
    """

    def __init__(
        self,
        address: str,
        arguments: tuple[Any, ...],
        seconds: float,
        memory_bytes: int | None = None,
        hostile: bool = False,
        *,
        returns: Any = None,
        reports: Any = None,
    ) -> None:
        """Start the process; after a little more than `seconds`, it ends by itself.

        The process's log lines have the id of the caller's run.
        """
        context, run = _context(), log.current_run.get()
        self._address, self._hostile = address, hostile
        self._returns, self._reports = returns, reports
        self.pipe, writing = context.Pipe(duplex=False)
        arguments = (writing, run, address, arguments, seconds, memory_bytes, hostile)
        try:
            self._process = _started(context, arguments)
        except BaseException:
            self.pipe.close()
            raise
        finally:
            writing.close()  # so that the pipe ends when the child does

    def receive(self, seconds: float, watch: Watch = UNWATCHED) -> Any:
        """The process's next report, or the Outcome.

        Raises ChildDiedError if the process dies, sends nothing for `seconds`, or sends
        what is neither, and CancelledError if the job is canceled meanwhile.
        """
        deadline = time.monotonic() + seconds
        while not self.pipe.poll(CANCEL_SECONDS) and time.monotonic() < deadline:
            watch.check()
        try:
            data = self._read(deadline)
        except TimeoutError:
            raise ChildDiedError(
                f"The process took more than {seconds:.0f} seconds and was stopped."
            ) from None
        except EOFError:
            raise ChildDiedError(f"The process {self._end()}.") from None
        except OSError:  # on Windows, a message that is too long
            raise UnreadableAnswerError from None
        try:
            return self._decoded(data)
        except ValueError:
            raise UnreadableAnswerError from None

    def _read(self, deadline: float) -> bytes:
        """The next message. Raises TimeoutError, EOFError, or UnreadableAnswerError.

        No message is read that is longer than MOST_BYTES, and none is waited for that
        has begun but doesn't end. `Connection.recv_bytes` would wait. It doesn't on
        Windows, where a message can't come in parts.
        """
        if sys.platform == "win32":
            if not self.pipe.poll(max(0.0, deadline - time.monotonic())):
                raise TimeoutError
            return self.pipe.recv_bytes(MOST_BYTES)
        (size,) = LENGTH.unpack(self._bytes(LENGTH.size, deadline))
        if size > MOST_BYTES:
            raise UnreadableAnswerError
        return self._bytes(size, deadline)

    def _bytes(self, size: int, deadline: float) -> bytes:
        data = bytearray()
        while len(data) < size:
            left = deadline - time.monotonic()  # more may come, byte by byte, forever
            if left <= 0 or not wait([self.pipe], left):
                raise TimeoutError
            chunk = os.read(self.pipe.fileno(), size - len(data))
            if not chunk:
                raise EOFError
            data += chunk
        return bytes(data)

    def _decoded(self, data: bytes) -> Any:
        """The report or the Outcome. Raises ValueError if the message is neither."""
        sent = codec.from_json(data, _Message, finite=self._hostile)
        kind = self._reports
        if sent.status == "finished":
            kind = self._returns or returned_by(self._address)
        elif sent.status == "failed":
            if not sent.message:
                raise ValueError("a failure without a sentence")
            text = sent.message
            if self._hostile:  # a page would draw its Markdown
                text = plain(text, MOST_OF_A_MESSAGE)
            return Outcome("failed", message=text)
        try:
            value = codec.as_type(sent.value, kind)
        except Exception:  # a class may raise any error for a field it lacks
            raise ValueError(f"not a {kind}") from None
        return value if sent.status == "report" else Outcome("finished", value)

    def _end(self) -> str:
        self._process.join(5)
        status = self._process.exitcode
        if status is None:
            return "does not respond"
        if status >= 0:
            return f"exited with status {status}"
        name, meaning = signal.Signals(-status).name, signal.strsignal(-status)
        return f"was killed by {name} ({meaning})"

    def end(self) -> None:
        if hasattr(os, "killpg"):
            with suppress(ProcessLookupError):  # the child had no time to make a group
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.join(5)
        self.pipe.close()


def returned_by(address: str) -> Any:
    """The type of the result, by the function's annotation; Any without one."""
    kind = typing.get_type_hints(resolve(address)).get("return", Any)
    return type(None) if kind is typing.NoReturn else kind


def _started(context: BaseContext, arguments: tuple[Any, ...]) -> Any:
    """A new process. Raises ChildDiedError if the system can't start one.

    If the server of forks was killed, the kernel takes a moment to end it. Until then,
    Python asks the dying server; after that, it starts another.
    """
    deadline = time.monotonic() + RESTART_SECONDS
    while True:
        process = context.Process(  # type: ignore[attr-defined]
            target=_work, args=arguments, daemon=True
        )
        try:
            process.start()
            return process
        except (EOFError, OSError) as error:
            if time.monotonic() > deadline:
                why = str(error) or "the process that starts others has ended"
                problem = f"The app can't start a process: {why}."
                raise ChildDiedError(problem) from error
        time.sleep(0.05)


def _context() -> BaseContext:
    if sys.platform == "win32":
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    # Without the preload, each child would import these modules itself. A child imports
    # its parent's main module, which needs distributed. An optimizer's first step needs
    # torch._dynamo, and the simulated device the lists of its operations.
    modules = ("torch._dynamo", "to_device.sim.operations", "core.jobs.worker")
    context.set_forkserver_preload(["torch", *modules, "distributed"])
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

    # Otherwise, Python soon looks at all objects of the server that forked this, which
    # takes 0.2 s, and copies their memory.
    gc.freeze()
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
        with suppress(Exception):  # the call will fail with the same error
            resolve(address)  # while all files can be read
        if sys.platform == "linux":
            _close_pipes_of_others(pipe)
        confine()
    outcome = outcome_of(
        address, arguments, Watch(report=lambda event: _send(pipe, "report", event))
    )
    try:
        _send(pipe, outcome.status, outcome.value, outcome.message)
    except (TypeError, ValueError) as error:  # the result isn't plain data
        _send(pipe, "failed", message=explain(error))


def _send(pipe: Connection, status: Any, value: Any = None, message: str = "") -> None:
    data = codec.to_json(_Message(status, value, message))
    if sys.platform == "win32":
        pipe.send_bytes(data)
    else:
        with open(pipe.fileno(), "wb", closefd=False) as file:
            file.write(LENGTH.pack(len(data)) + data)


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
    if wait([parent.sentinel], 0):  # the parent had ended before
        os.killpg(0, signal.SIGKILL)


def _close_pipes_of_others(own: Connection) -> None:
    """Close the pipes that Python gives each child of the server of forks.

    Python's resource tracker, which isn't confined, would do what a child asks for by
    such a pipe, and would keep in memory whatever is sent without an end.
    """
    parent = multiprocessing.parent_process()
    assert parent is not None
    for handle in map(int, os.listdir("/proc/self/fd")):
        with suppress(OSError):  # the listing's own handle is closed by now
            kind = os.fstat(handle).st_mode
            is_channel = stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)
            is_kept = handle <= 2 or handle in (own.fileno(), parent.sentinel)
            if is_channel and not is_kept:
                os.close(handle)


def _limit_memory(more_bytes: int) -> None:
    import resource

    import psutil

    # RLIMIT_AS would count the files that libraries map, tens of gigabytes with CUDA.
    limit = psutil.Process().memory_info().data + more_bytes
    with suppress(ValueError):  # a lower limit is set already
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def confine() -> None:
    """Give up rights for good: this process sees no GPU, writes no file, dumps no core.

    Since Linux 5.13, it can't start programs or create files, either, and it reads only
    the files in `readable`; since 6.7, it can't open TCP connections; since 6.12, it
    can't send signals to others. With libseccomp, it can't open sockets, start
    processes, or send signals on any kernel. On macOS, MPS can't be hidden; on
    Windows, the process gives up only the devices.
    """
    hide_devices()
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        with suppress(OSError):  # a kernel without Landlock
            _restrict_files_and_network()
        with suppress(OSError):  # a machine without libseccomp
            seccomp.give_up_processes_and_sockets()


def hide_devices() -> None:
    os.environ.update(NO_DEVICES)


def readable() -> Iterator[Path]:
    """Files and folders that a confined process may read, with all that is in them.

    They hold Python, its packages, the system's libraries, and the app's code, but none
    of the app's data, and none of its settings.
    """
    # A module may be imported when it is first used.
    packages = {Path(sysconfig.get_path(name)) for name in ("purelib", "platlib")}
    yield from (Path(sys.base_prefix, "lib"), Path(sysconfig.get_path("stdlib")))
    for path in {*map(Path, sys.path), *packages}:
        # The root folder, which has other files, too, is in sys.path.
        is_root = ROOT.is_relative_to(path) and path not in packages
        has_private = any(p.is_relative_to(path) for p in (DATA, Path.home()))
        if path.is_absolute() and not (is_root or has_private):
            yield path
    yield from (file.parent for file in ROOT.glob("*/__init__.py"))
    yield from ROOT.glob("*.toml")
    yield ROOT / "content"
    yield from map(Path, SYSTEM_FILES)


class _Ruleset(ctypes.Structure):
    """Rights that Landlock forbids, except where a rule grants them."""

    _fields_ = [
        ("files", ctypes.c_uint64),
        ("network", ctypes.c_uint64),
        ("scopes", ctypes.c_uint64),
    ]


class _Rule(ctypes.Structure):
    """Grants rights on a file, or on a folder and all that is in it."""

    _pack_ = 1
    _fields_ = [("rights", ctypes.c_uint64), ("handle", ctypes.c_int32)]


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
        rights,
        NETWORK_RIGHTS if version >= 4 else 0,
        SCOPES if version >= 6 else 0,
    )
    # An older kernel knows only the first fields, and accepts the others if they are 0.
    size = ctypes.c_size_t(ctypes.sizeof(ruleset))
    handle = checked(libc.syscall(CREATE_RULESET, ctypes.byref(ruleset), size, 0))
    try:
        for path in readable():
            with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
                opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
                try:
                    granted = READ_FILES | (READ_FOLDERS if path.is_dir() else 0)
                    rule = ctypes.byref(_Rule(granted, opened))
                    checked(libc.syscall(ADD_RULE, handle, PATH_BENEATH, rule, 0))
                finally:
                    os.close(opened)
        checked(libc.prctl(SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
        checked(libc.syscall(RESTRICT_SELF, handle, 0))
    finally:
        os.close(handle)
