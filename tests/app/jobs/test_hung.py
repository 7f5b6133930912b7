"""Processes that do nothing, and others that are only slow to answer."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psutil
import pytest

from core.jobs import hung
from tests.app.jobs.follow import wait


@contextmanager
def running(code: str) -> Iterator[psutil.Popen]:
    process = psutil.Popen(
        [sys.executable, "-c", f"print(1, flush=True)\n{code}"], stdout=subprocess.PIPE
    )
    try:
        process.stdout.readline()
        yield process
    finally:
        with suppress(psutil.NoSuchProcess):  # a test has ended it
            process.kill()
            process.wait()
        process.stdout.close()


@pytest.mark.alone
@pytest.mark.slow
def test_who_waits_or_is_stopped_hangs_and_who_computes_does_not():
    with running("import time; time.sleep(600)") as process:
        wait(lambda: process.status() == psutil.STATUS_SLEEPING)
        assert hung.hangs(process.pid)
    with running("while True: pass") as process:
        assert not hung.hangs(process.pid)
        process.suspend()
        wait(lambda: process.status() == psutil.STATUS_STOPPED)
        assert hung.hangs(process.pid)
        hung.kill(process.pid)
        assert process.wait(60)
    assert not hung.hangs(process.pid), "it has ended"


@pytest.mark.alone
@pytest.mark.slow
def test_who_computes_in_a_thread_while_its_main_thread_waits_is_busy():
    code = """
import threading
def compute():
    while True:
        sum(range(1000))
threading.Thread(target=compute).start()
"""
    with running(code) as process:
        assert not hung.hangs(process.pid)


def test_no_process_is_taken_for_this_one():
    for pid in (None, 0):
        assert not hung.hangs(pid)
        hung.kill(pid)
