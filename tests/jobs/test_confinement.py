"""core.jobs.confinement: what a process can't do any more. Each in a child."""

import ctypes
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from core import devices
from core.jobs import sandbox
from core.jobs.confinement import NO_DEVICES


def attempts(folder: Path, port: int) -> dict[str, str]:
    """Runs in a child: what became of each attempt to leave a trace."""
    other = folder / "other"
    found = {}
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
    }
    for name, deed in deeds.items():
        try:
            deed()
            found[name] = "done"
        except OSError as error:
            found[name] = type(error).__name__
    return found


def has_landlock() -> bool:
    """Whether the kernel confines as much as the newest that we know of."""
    version = ctypes.CDLL(None).syscall(444, None, ctypes.c_size_t(0), 1)
    return version >= 6


@pytest.mark.skipif(sys.platform != "linux", reason="Landlock is Linux's")
def test_nothing_is_left_behind(tmp_path: Path) -> None:
    """A hostile child changes no file, starts no program, connects to nobody."""
    if not has_landlock():
        pytest.skip("this kernel has no Landlock, or an old one")
    (tmp_path / "other").write_text("as it was")
    with socket.create_server(("127.0.0.1", 0)) as server:
        found = sandbox.call(
            "tests.jobs.test_confinement:attempts",
            tmp_path,
            server.getsockname()[1],
            hostile=True,
        )
    assert set(found.values()) == {"PermissionError"}, found
    assert [each.name for each in tmp_path.iterdir()] == ["other"]
    assert (tmp_path / "other").read_text() == "as it was"


def limits() -> list[tuple[int, int]]:
    """Runs in a child: bytes of a file that it may write, and of a core dump."""
    import resource

    return [
        resource.getrlimit(n) for n in (resource.RLIMIT_FSIZE, resource.RLIMIT_CORE)
    ]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limits")
def test_no_byte_is_written_without_landlock_either() -> None:
    """The limits that every Unix has keep files empty, and no core is dumped."""
    address = "tests.jobs.test_confinement:limits"
    assert sandbox.call(address, hostile=True) == [(0, 0), (0, 0)]


def seen_by_drivers() -> dict[str, str | None]:
    """Runs in a child: what C's getenv answers, which is what drivers ask."""
    getenv = ctypes.CDLL(None).getenv
    getenv.restype = ctypes.c_char_p
    values = {name: getenv(name.encode()) for name in NO_DEVICES}
    return {name: None if v is None else v.decode() for name, v in values.items()}


def test_drivers_find_no_device() -> None:
    """Every hostile child has them hidden, and no other child has."""
    address = "tests.jobs.test_confinement:seen_by_drivers"
    assert sandbox.call(address, hostile=True) == NO_DEVICES
    assert sandbox.call(address) == {name: os.environ.get(name) for name in NO_DEVICES}


def accelerators() -> int:
    return len(devices.every()) - 1


@pytest.mark.gpu
def test_torch_finds_no_accelerator() -> None:
    """In one and the same forking server, hostile children see none, others all."""
    address = "tests.jobs.test_confinement:accelerators"
    assert sandbox.call(address, hostile=True) == 0
    assert sandbox.call(address) == accelerators()
