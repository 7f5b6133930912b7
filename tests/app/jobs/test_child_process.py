"""What happens in a child stays there, and what a hostile one can't do."""

import ctypes
import json
import mmap
import multiprocessing
import os
import re
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path

import psutil
import pytest

from core import log
from core.errors import CancelledError, explain
from core.jobs import child_process
from core.watch import Watch
from tests.app.jobs.follow import wait
from tests.app.jobs.landlock import landlock
from tests.process import HOUR, descendants, that_go_on
from to_device.devices import every
from to_device.errors import ExplainedError

GIGABYTE = 2**30
CLONE_NEWUSER = 0x10000000


def breed(path: Path, seconds: float) -> None:
    program = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    path.write_text(str(program.pid))
    time.sleep(seconds)


def fork_and_sleep() -> None:
    with suppress(PermissionError):  # in a hostile child
        os.fork()
    time.sleep(600)


def ask_for_sleep(hostile: bool) -> None:
    child_process.call(
        "tests.app.jobs.test_child_process:fork_and_sleep", seconds=600, hostile=hostile
    )


def fill(size: int) -> int:
    import torch

    return int(torch.ones(size, dtype=torch.uint8).sum())


def test_a_child_has_the_seconds_that_are_asked_for():
    with pytest.raises(child_process.ChildDiedError, match=r"\b1 s"):
        child_process.call_for(1, "tests.app.jobs.test_child_process:fork_and_sleep")


def test_a_child_ends_as_soon_as_the_job_is_canceled(tmp_path):
    started = time.monotonic()
    canceled = Watch(cancelled=lambda: time.monotonic() > started + 1)
    with pytest.raises(CancelledError):
        child_process.call(
            "tests.app.jobs.test_child_process:breed",
            tmp_path / "id",
            600.0,
            seconds=600,
            watch=canceled,
        )
    assert time.monotonic() < started + 60


def test_a_failure_is_a_sentence_and_a_log_line_of_its_run(monkeypatch, capfd):
    monkeypatch.setenv("LOG_FORMAT", "json")  # which an earlier server of forks has not
    afresh = multiprocessing.get_context("spawn")
    monkeypatch.setattr(child_process, "_context", lambda: afresh)
    run = log.current_run.set("a1")
    with pytest.raises(ExplainedError, match="TypeError"):
        child_process.call("math:sqrt", "four")
    log.current_run.reset(run)
    err = capfd.readouterr().err
    (line,) = [json.loads(line) for line in err.splitlines() if "traceback" in line]
    assert line["run"] == "a1"
    assert "TypeError" in line["traceback"]


@pytest.mark.parametrize(
    ("call", "text"), [(("os:_exit", 3), "status 3"), (("os:abort",), "SIGABRT")]
)
def test_a_death_of_the_child_is_reported(call, text):
    with pytest.raises(child_process.ChildDiedError, match=text):
        child_process.call(*call, seconds=HOUR)


@pytest.mark.alone
@pytest.mark.slow
@pytest.mark.parametrize(("lasts", "seconds"), [(0, 60), (600, 5)])
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no process groups")
def test_nothing_of_a_child_is_left(tmp_path, lasts, seconds):
    """It ends with what it started, as Pillow starts Ghostscript, even if it hangs."""
    child_process.warm_up()  # its server outlives its children
    before, path = descendants(), tmp_path / "id"
    hangs = pytest.raises(child_process.ChildDiedError, match=r"\b5 s")
    with hangs if lasts > seconds else nullcontext():
        child_process.call(
            "tests.app.jobs.test_child_process:breed", path, lasts, seconds=seconds
        )
    assert list(that_go_on(descendants() - before)) == []
    with suppress(psutil.NoSuchProcess):
        assert list(that_go_on([psutil.Process(int(path.read_text()))])) == []


@pytest.mark.alone
@pytest.mark.slow
@pytest.mark.parametrize("hostile", [False, True])
@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's signal is Linux's")
def test_children_end_with_their_parent(hostile):
    child_process.warm_up()
    before = descendants()
    start = child_process._context().Process
    parent = start(target=ask_for_sleep, args=(hostile,))
    parent.start()
    # The parent, its server of forks, its child, and the child's own, if it may fork.
    wait(lambda: len(descendants() - before) >= 4 - hostile)
    born = descendants() - before
    parent.kill()
    assert list(that_go_on(born)) == []


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="the limit is Linux's")
def test_memory_has_a_limit():
    fill = "tests.app.jobs.test_child_process:fill"
    assert child_process.call(fill, 1000, memory_bytes=GIGABYTE) == 1000
    with pytest.raises(ExplainedError, match=re.escape(explain(MemoryError()))):
        child_process.call(fill, 2 * GIGABYTE, memory_bytes=GIGABYTE)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_children_are_forked_from_a_server_that_has_loaded_torch():
    server = child_process.call("os:getppid")
    assert child_process.call("os:getppid") == server != os.getpid()
    assert "libtorch" in Path(f"/proc/{server}/maps").read_text()


def attempts(folder: Path, port: int) -> dict[str, str]:
    """Runs in a child: what became of each attempt to leave a trace."""
    import fcntl
    import resource

    def checked(result: int) -> None:
        if result < 0:
            raise OSError(ctypes.get_errno(), "refused")

    libc = ctypes.CDLL(None, use_errno=True)
    other = folder / "other"
    results = {}
    deeds: dict[str, Callable[[], object]] = {
        "create": lambda: (folder / "new").touch(),
        "write": lambda: other.write_text("changed"),
        "append": lambda: other.open("a"),
        "cut short": lambda: os.truncate(other, 0),
        "delete": other.unlink,
        "rename": lambda: other.rename(folder / "elsewhere"),
        "make a folder": (folder / "folder").mkdir,
        "start a program": lambda: subprocess.run(["true"], check=True),
        "connect": lambda: socket.create_connection(("127.0.0.1", port), 5),
        "signal": lambda: os.kill(os.getppid(), 0),
        # By such sockets, it could learn where the server of forks listens, and ask it
        # for a process that isn't confined.
        "ask the kernel about sockets": lambda: socket.socket(16, socket.SOCK_RAW, 4),
        "open a socket": lambda: socket.socket(socket.AF_UNIX),
        "start a process": lambda: os.fork() or os._exit(0),
        "leave its group": os.setsid,
        "limit another process": lambda: resource.prlimit(
            os.getppid(), resource.RLIMIT_CPU
        ),
        "have the kernel signal another one": lambda: fcntl.fcntl(
            0, fcntl.F_SETOWN, os.getppid()
        ),
        # The kernel doesn't read the upper half of an int.
        "have the kernel signal another one, by a long number": lambda: checked(
            libc.fcntl(0, ctypes.c_long(fcntl.F_SETOWN | 1 << 32), os.getppid())
        ),
        "take a lease": lambda: fcntl.fcntl(
            os.open(other, os.O_RDONLY), fcntl.F_SETLEASE, fcntl.F_RDLCK
        ),
        "slow another one down": lambda: os.setpriority(
            os.PRIO_PROCESS, os.getppid(), 19
        ),
        "move another one": lambda: os.sched_setaffinity(os.getppid(), {0}),
        "leave shared memory": lambda: checked(libc.shmget(0, 4096, 0o600)),
        "let everybody write": lambda: other.chmod(0o777),
        "let everybody write, by the new call": lambda: checked(
            libc.syscall(452, -100, bytes(other), 0o777, 0)
        ),
        "give away": lambda: os.chown(other, os.getuid(), os.getgid()),
        "change its time": lambda: os.utime(other),
        "mark": lambda: os.setxattr(other, "user.mark", b"mark"),
        "take memory that isn't counted": lambda: mmap.mmap(-1, 4096),
        "leave its namespaces": lambda: checked(libc.unshare(CLONE_NEWUSER)),
    }
    for name, deed in deeds.items():
        try:
            deed()
            results[name] = "done"
        except OSError as error:
            results[name] = type(error).__name__
    threading.Thread(target=int).start()  # torch needs threads
    return results


def channels() -> int:
    """Runs in a child: how many pipes and sockets it has, besides its output's."""
    found = 0
    for handle in range(3, 256):
        with suppress(OSError):
            kind = os.fstat(handle).st_mode
            found += stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists them")
def test_a_hostile_child_has_no_pipe_but_its_own() -> None:
    """It has the one for its answer, and the one that closes when its parent ends."""
    address = "tests.app.jobs.test_child_process:channels"
    assert child_process.call(address, hostile=True) == 2
    assert child_process.call(address) > 2  # so the test would see others


@landlock
def test_nothing_is_left_behind(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("as it was")
    with socket.create_server(("127.0.0.1", 0)) as server:
        results = child_process.call(
            "tests.app.jobs.test_child_process:attempts",
            tmp_path,
            server.getsockname()[1],
            hostile=True,
        )
    assert set(results.values()) == {"PermissionError"}, results
    assert [path.name for path in tmp_path.iterdir()] == ["other"]
    assert (tmp_path / "other").read_text() == "as it was"


def file_limits() -> list[tuple[int, int]]:
    """Runs in a child: bytes of a file that it may write, and of a core dump."""
    import resource

    return [
        resource.getrlimit(n) for n in (resource.RLIMIT_FSIZE, resource.RLIMIT_CORE)
    ]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limits")
def test_no_byte_is_written_without_landlock_either() -> None:
    address = "tests.app.jobs.test_child_process:file_limits"
    assert child_process.call(address, hostile=True) == [(0, 0), (0, 0)]


def seen_by_drivers() -> dict[str, str | None]:
    """Runs in a child: what C's getenv answers, which is what drivers ask."""
    getenv = ctypes.CDLL(None).getenv
    getenv.restype = ctypes.c_char_p
    values = {name: getenv(name.encode()) for name in child_process.NO_DEVICES}
    return {name: None if v is None else v.decode() for name, v in values.items()}


def test_drivers_find_no_device() -> None:
    address = "tests.app.jobs.test_child_process:seen_by_drivers"
    assert child_process.call(address, hostile=True) == child_process.NO_DEVICES
    assert child_process.call(address) == {
        name: os.environ.get(name) for name in child_process.NO_DEVICES
    }


def accelerators() -> int:
    return len(every()) - 1


@pytest.mark.gpu
def test_torch_finds_no_accelerator() -> None:
    address = "tests.app.jobs.test_child_process:accelerators"
    assert child_process.call(address, hostile=True) == 0
    assert child_process.call(address) == accelerators()
