"""A process for a stranger's script, which can do nothing but compute.

With bubblewrap and core.jobs.seccomp, the process has no network and no device, can't
start another process or send signals, and can only read files: those of Python, its
packages, the system's libraries, core/ and to_device/.
"""

import os
import selectors
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO

import psutil

import to_device
from core.folders import ROOT
from to_device.errors import ExplainedError
from to_device.names import NO_DEVICES

ANSWER_FD = "ANSWER_FD"  # environment variable: the file descriptor for the answer
MOST_BYTES = {"output": 64_000, "errors": 64_000, "answer": 1_000_000}
MOST_THREADS = 100
CHECK_SECONDS = 0.1  # between two checks of the process's limits
MOST_HELD_UP = 5  # others' runs add so many times a process's seconds, but no more
TRY_SECONDS = 60.0  # how long the test of whether bubblewrap works may take
START_SECONDS = 60.0  # how long torch may take to load, before the code's time begins
OUT_OF_MEMORY = (b"MemoryError", b"DefaultCPUAllocator", b"Cannot allocate memory")

# Files that the process may read, besides Python and its packages. torch reads cpuinfo.
FILES = ("/lib", "/lib64", "/usr/lib", "/etc/ld.so.cache", "/proc/cpuinfo")
DEVICES = ("/dev/null", "/dev/urandom")
ENVIRONMENT = {
    "HOME": "/",
    "LANG": "C.UTF-8",
    "OMP_NUM_THREADS": "1",  # so as not to slow down a training run that is measured
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONUNBUFFERED": "1",  # so output arrives even if the process is killed
    "TORCHINDUCTOR_CACHE_DIR": "/tmp",  # torch wants a folder, even without writing
    "USER": "visitor",
    **NO_DEVICES,
}

# With --die-with-parent, Linux ends a process when the thread that started it ends. So
# one thread starts all processes, and stays.
_starter = ThreadPoolExecutor(1, "confined_code")


@dataclass(frozen=True)
class End:
    """How the process ended, and what it wrote."""

    status: int | None  # exit status; None if the process was stopped (see `why`)
    output: bytes
    errors: bytes
    answer: bytes
    why: str = ""


class ConfinedCode:
    """A process that runs Python with `argv`: -m MODULE or -c CODE, and arguments."""

    def __init__(
        self, argv: list[str], seconds: float = 10, memory_bytes: int = 1_500_000_000
    ) -> None:
        """Start the process at once, so that it can load torch before somebody asks.

        Raises ExplainedError if this machine can't confine a process.
        """
        if why := problem():
            raise ExplainedError(why)
        self._seconds, self._memory = seconds, memory_bytes
        pipes = {name: os.pipe() for name in MOST_BYTES}
        answer = pipes["answer"][1]
        self._process = _starter.submit(
            subprocess.Popen,
            bubblewrap_command(argv, memory_bytes),
            stdin=subprocess.PIPE,
            stdout=pipes["output"][1],
            stderr=pipes["errors"][1],
            pass_fds=[answer],
            env={**ENVIRONMENT, ANSWER_FD: str(answer)},
            start_new_session=True,
            bufsize=0,
        ).result()
        assert self._process.stdin
        self._stdin = self._process.stdin
        self._pipes = {name: reading for name, (reading, _) in pipes.items()}
        for _, writing in pipes.values():
            os.close(writing)

    def wait_until_ready(self) -> None:
        """Wait until the process has loaded torch and is ready, or has ended."""
        with selectors.DefaultSelector() as ready:
            ready.register(self._pipes["answer"], selectors.EVENT_READ)
            ready.select(START_SECONDS)

    def ask(self, request: bytes) -> End:
        """Send the request to the standard input, and wait until the process has ended.

        The `seconds` of the process begin here. After them, the process is stopped. The
        time doesn't count in which it could have run, and other processes ran instead.
        But a process that has computed for its seconds, in all its threads together,
        was held up by nobody.
        """
        self._start = time.monotonic()
        self._held_up_before, self._computed_before = self._held_up(), self._computed()
        arguments = (self._stdin, request)
        threading.Thread(target=_write, args=arguments, daemon=True).start()
        texts = {name: b"" for name in MOST_BYTES}
        try:
            why = self._read(texts)
            status = self._process.poll()
        finally:
            self.end()
        texts = {name: text[: MOST_BYTES[name]] for name, text in texts.items()}
        if status and 128 < status <= 192:
            status = 128 - status  # bubblewrap adds 128 to the number of a signal
        if not why and status and status < 0:
            why = f"A signal stopped the program: {signal.strsignal(-status)}."
        elif not why and status and any(e in texts["errors"] for e in OUT_OF_MEMORY):
            why = self._too_much
        return End(None if why and (status or 0) <= 0 else status, **texts, why=why)

    def _read(self, texts: dict[str, bytes]) -> str:
        """Collect output until the end; returns which limit was exceeded, or ""."""
        with selectors.DefaultSelector() as ready:
            for name, pipe in self._pipes.items():
                ready.register(pipe, selectors.EVENT_READ, name)
            while True:
                has_ended = self._process.poll() is not None
                events = ready.select(0 if has_ended else CHECK_SECONDS)
                for key, _ in events:
                    if chunk := os.read(key.fd, 2**16):
                        texts[key.data] += chunk
                    else:
                        ready.unregister(key.fd)
                why = self._excess(texts)
                if why or (has_ended and not events):
                    return why

    def _excess(self, texts: dict[str, bytes]) -> str:
        for name, most in MOST_BYTES.items():
            if len(texts[name]) > most:
                return (
                    f"The program wrote more than {most // 1000:,} kB and was stopped."
                )
        if self._is_late():
            return (
                f"The program ran for over {self._seconds:g} seconds and was stopped."
            )
        memory = threads = 0
        for process in self._members():
            with suppress(psutil.Error):
                memory += process.memory_info().rss
                threads += process.num_threads()
        if threads > MOST_THREADS:
            return (
                f"The program started more than {MOST_THREADS} threads and was stopped."
            )
        return self._too_much if memory > self._memory else ""

    def _is_late(self) -> bool:
        elapsed = time.monotonic() - self._start
        if elapsed <= self._seconds:
            return False
        held_up = self._held_up() - self._held_up_before
        ran = elapsed - min(held_up, MOST_HELD_UP * self._seconds)
        computed = self._computed() - self._computed_before
        return max(ran, computed) > self._seconds

    def _computed(self) -> float:
        """The seconds for which the threads of the process computed, all together."""
        seconds = 0.0
        for process in self._members():
            with suppress(psutil.Error):
                times = process.cpu_times()
                seconds += times.user + times.system
        return seconds

    def _held_up(self) -> float:
        """The seconds for which the main thread waited, and other threads ran instead.

        They may be the process's own.
        """
        seconds = 0.0
        for process in self._members():
            with suppress(OSError, ValueError, IndexError):
                # Linux tells nanoseconds: how long the main thread ran, and waited.
                times = Path(f"/proc/{process.pid}/schedstat").read_text().split()
                seconds += int(times[1]) / 1e9
        return seconds

    @property
    def _too_much(self) -> str:
        return (
            f"The program used more than {self._memory / 1e9:g} GB of "
            "memory and was stopped."
        )

    def _members(self) -> list[psutil.Process]:
        with suppress(psutil.Error):
            first = psutil.Process(self._process.pid)
            return [first, *first.children(recursive=True)]
        return []

    def end(self) -> None:
        pipes, self._pipes = self._pipes, {}
        if not pipes:
            return
        for process in self._members():
            with suppress(psutil.Error):
                process.kill()
        with suppress(ProcessLookupError, PermissionError):  # the child may have ended
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in pipes.values():
            os.close(pipe)
        _write(self._stdin)


def _write(pipe: IO[bytes], request: bytes = b"") -> None:
    """Send the request if the process still reads, and close the pipe."""
    with suppress(OSError, ValueError), pipe:
        pipe.write(request)


def bubblewrap_command(argv: list[str], memory_bytes: int) -> list[str]:
    """The bubblewrap command that runs Python with `argv`, and confines it."""
    python = os.path.realpath(sys.executable)
    packages = sorted({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
    code = {str(ROOT / "core"), str(Path(to_device.__file__).parent)}
    files = sorted({*FILES, *packages, *code, f"{sys.base_prefix}/lib", python})
    return [
        shutil.which("bwrap") or "bwrap",
        *("--unshare-all", "--hostname", "sandbox", "--die-with-parent"),
        *("--new-session", "--cap-drop", "ALL", "--uid", "65534", "--gid", "65534"),
        *(part for file in files for part in ("--ro-bind-try", file, file)),
        *(part for file in DEVICES for part in ("--dev-bind", file, file)),
        *("--dir", "/tmp", "--remount-ro", "/", "--chdir", "/"),
        *("--setenv", "PYTHONPATH", os.pathsep.join((str(ROOT), *packages))),
        *(python, "-m", "core.jobs.seccomp", str(memory_bytes), *argv),
    ]


def problem() -> str:
    """Why this machine can't confine a process, in a sentence; "" if it can.

    A problem is looked for anew each time: the machine may just be out of memory.
    """
    try:
        _try_once()
    except ExplainedError as error:
        return str(error)
    return ""


@cache
def _try_once() -> None:
    """Raises ExplainedError if this machine can't confine a process."""
    if sys.platform != "linux":
        raise ExplainedError("The app can confine visitors' code only on Linux.")
    if not shutil.which("bwrap"):
        why = "The program bubblewrap is not installed on this machine."
        raise ExplainedError(why)
    code = f"from core.jobs import seccomp; seccomp.attempt({str(ROOT / 'app.py')!r})"
    unusable = "bubblewrap can't be used here"
    try:
        attempt = subprocess.run(
            bubblewrap_command(["-c", code], 10**9),
            env=ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TRY_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ExplainedError(f"{unusable}: {error}.") from None
    if attempt.returncode:
        raise ExplainedError(f"{unusable}: {attempt.stderr.strip()[-200:]}.")
    if deeds := ", ".join(attempt.stdout.splitlines()):
        raise ExplainedError(f"A confined process can still {deeds}.")
