"""The real app in a real browser."""

import contextlib
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from core.jobs.cluster import ROOT
from tests.conftest import CHROMIUM

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
        """The process that works hardest just now: the one that trains."""
        before = {each: sum(each.cpu_times()[:2]) for each in self.family}
        time.sleep(0.7)
        used = {}
        for each, seconds in before.items():
            with contextlib.suppress(psutil.NoSuchProcess):
                used[each] = sum(each.cpu_times()[:2]) - seconds
        return max(used, key=used.__getitem__)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def start_server(folder: Path, **environment: str) -> Server:
    """The app on a free port, as `streamlit run app.py` starts it."""
    port = free_port()
    log = folder / "server.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "streamlit", "run", "app.py"),
                *("--server.headless", "true"),
                *("--server.address", "127.0.0.1"),
                *("--server.port", str(port)),
            ],
            cwd=ROOT,
            env={**os.environ, **environment},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    url = f"http://127.0.0.1:{port}"
    deadline = time.monotonic() + 60
    while True:
        try:
            urllib.request.urlopen(f"{url}/_stcore/health", timeout=1).read()
            return Server(process, url, log)
        except OSError:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    assert CHROMIUM, "install Debian's chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = start_server(tmp_path_factory.mktemp("server"))
    yield server
    server.process.terminate()
    server.process.wait(20)
    log = server.log.read_text()
    assert "Uncaught app execution" not in log, log


@pytest.fixture
def visitor(browser: Browser, server: Server) -> Iterator[Callable[..., Page]]:
    """Opens a page as a new person: visitor("Train?task=sprites", ...)."""
    contexts = []

    def open_page(address: str = "", **options) -> Page:
        options.setdefault("viewport", {"width": 1280, "height": 900})
        contexts.append(browser.new_context(**options))
        page = contexts[-1].new_page()
        page.goto(f"{server.url}/{address}")
        return page

    yield open_page
    for context in contexts:
        context.close()
