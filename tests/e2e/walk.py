"""What the tests in a browser share: servers, and how a page is read and pressed."""

import contextlib
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from playwright.sync_api import Page, expect

from core.classroom.rules import Rules
from core.jobs.cluster import ROOT
from core.store.classes import Class
from core.store.store import Store

DATABASE = "app.sqlite"
VIEWS = {
    "light": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "has_touch": True},
}
SHORT = "Train?task=sprites&epochs=2&batch_size=256"
LONG = "Train?task=sprites&epochs=200"  # a minute; no test waits for its end
SLOW = 90_000  # milliseconds; workers load torch when the server starts


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
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


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
                **environment,
            },
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


def open_class(folder: Path, size: int, **rules: Any) -> Class:
    """A class that is open on the server that is then started in that folder."""
    store = Store(f"sqlite:///{folder / DATABASE}")
    made = store.classes.create("Monday", size, Rules(**rules))
    store.classes.change(made.id, is_open=True)
    store.close()
    return made


def key(page: Page, name: str):
    """The button with that key."""
    return page.locator(f".st-key-{name} button")


def ready(page: Page) -> Page:
    """The page, once it knows the machine."""
    expect(page.get_by_text("Workers are starting")).to_have_count(0, timeout=SLOW)
    expect(page.get_by_test_id("stApp")).to_have_attribute(
        "data-test-script-state", "notRunning", timeout=SLOW
    )
    return page


def enter(page: Page, label: str, number: int) -> None:
    """Write a number into the box with that label."""
    box = page.get_by_role("spinbutton", name=label)
    box.fill(str(number))
    box.press("Enter")


def start(page: Page) -> Page:
    """The page, with a run started on it."""
    key(ready(page), "start_training").click()
    return page


def progress(page: Page):
    """The line that says how far the run is."""
    return page.get_by_text(re.compile(r"Epoch \d+ of \d+ · step"))


def result(page: Page):
    """The sentence that a finished run ends with."""
    return page.get_by_text("of the test images are classified correctly")


def sideways(page: Page) -> int:
    """By how many pixels the page is wider than its window."""
    return page.get_by_test_id("stMain").evaluate(
        "main => main.scrollWidth - main.clientWidth"
    )
