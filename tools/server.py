"""The app in a process of its own, and this machine's Chromium: for tests and tools."""

import contextlib
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

if TYPE_CHECKING:
    from core.store.classes import Class

ROOT = Path(__file__).parents[1]
DATABASE = "app.sqlite"
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))),
    None,
)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@dataclass
class Server:
    """A running app."""

    process: subprocess.Popen
    url: str
    log: Path

    @property
    def family(self) -> list[psutil.Process]:
        """All processes below the server's."""
        return psutil.Process(self.process.pid).children(recursive=True)

    def busiest(self) -> psutil.Process:
        """The process that trains, once no other is busy with its start."""
        while True:
            before = {each: sum(each.cpu_times()[:2]) for each in self.family}
            time.sleep(0.7)
            used = {}
            for each, seconds in before.items():
                with contextlib.suppress(psutil.NoSuchProcess):
                    used[each] = sum(each.cpu_times()[:2]) - seconds
            process = max(used, key=used.__getitem__)
            if used[process] > 0.8 * sum(used.values()):
                return process


def free_port() -> int:
    """Below the ports that systems give to clients, which would take it meanwhile."""
    while True:
        port = 20_000 + secrets.randbelow(12_000)
        with socket.socket() as listener, contextlib.suppress(OSError):
            listener.bind(("127.0.0.1", port))
            return port


def start_server(folder: Path, **environment: str) -> Server:
    """The app on a free port, as `streamlit run app.py` starts it.

    Its database is in the folder, where a second server finds what the first has kept.
    It measures nothing by itself, which would be in the way of what is timed.
    """
    database = f"sqlite:///{folder / DATABASE}"
    port = free_port()
    log = folder / "server.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "streamlit", "run", "app.py"),
                *("--server.headless", "true"),
                *("--server.port", str(port)),
            ],
            cwd=ROOT,
            env={
                **os.environ,
                "DATABASE_URL": database,
                "MEASURE_WHEN_IDLE": "0",
                # Streamlit takes any folder but site-packages for a developer's.
                "STREAMLIT_GLOBAL_DEVELOPMENT_MODE": "false",
                **environment,
            },
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    path = environment.get("STREAMLIT_SERVER_BASE_URL_PATH", "")
    url = f"http://127.0.0.1:{port}/{path}".rstrip("/")
    deadline = time.monotonic() + 120
    while True:
        try:
            urllib.request.urlopen(f"{url}/_stcore/health", timeout=1).read()
            return Server(process, url, log)
        except OSError:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)


def open_class(folder: Path, size: int, **rules: Any) -> "Class":
    """A class that is open on the server that is then started in that folder."""
    from core.classroom.rules import Rules
    from core.store.store import Store

    store = Store(f"sqlite:///{folder / DATABASE}")
    made = store.classes.create("Monday", size, Rules(**rules))
    store.classes.change(made.id, is_open=True)
    store.close()
    return made
