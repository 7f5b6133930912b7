"""Python in a process of its own, as a test starts it."""

import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[1]
HOUR = 3600.0  # a wait of so many seconds would end at the limit of a test


def python(
    *arguments: str,
    input: bytes = b"",
    env: dict[str, str] | None = None,
    status: int = 0,
) -> subprocess.CompletedProcess:
    """Run this Python in the root of the tree; has its output as text.

    AssertionError with its errors where it does not exit with `status`.
    """
    command = [sys.executable, *arguments]
    done = subprocess.run(
        command, cwd=ROOT, env=env, input=input, capture_output=True, timeout=180
    )
    done.stdout, done.stderr = done.stdout.decode(), done.stderr.decode()
    assert done.returncode == status, done.stderr
    return done


def descendants() -> set[psutil.Process]:
    """Of this process, but those of an engine or a browser, which start any time."""
    processes = set()
    for child in psutil.Process().children():
        with suppress(psutil.NoSuchProcess):
            if not {"core.jobs.cluster", "run-driver"} & {*child.cmdline()}:
                processes |= {child, *child.children(recursive=True)}
    return processes


def that_go_on(processes: Iterable[psutil.Process]) -> Iterator[str]:
    """The command lines of those that have not ended in a minute.

    One that has, but that its parent has not yet asked about, counts as ended.
    """
    _, running = psutil.wait_procs(list(processes), timeout=60)
    for process in running:
        with suppress(psutil.NoSuchProcess):
            if process.status() != psutil.STATUS_ZOMBIE:
                yield " ".join(process.cmdline())
