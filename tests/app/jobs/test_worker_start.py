"""Workers that can't start say why, and are tried again."""

import multiprocessing

import pytest

from core.jobs import cluster
from core.jobs.cluster import Process, no_start
from tests.app.jobs.follow import wait


def chained(text: str) -> RuntimeError:
    """As Dask raises what has kept a nanny from starting."""
    error = RuntimeError("Nanny failed to start.")
    error.__cause__ = OSError(text)
    return error


def test_the_first_cause_is_told_in_one_line():
    text = no_start(chained("a\nb."))
    assert "OSError: a b" in text
    assert "\n" not in text


def test_a_machine_without_semaphores_is_told_what_it_lacks(monkeypatch):
    def refuse(_: object) -> None:
        raise OSError(30, "a b")

    monkeypatch.setattr(multiprocessing.context.BaseContext, "Lock", refuse)
    text = no_start(chained("a"))
    assert "/dev/shm" in text
    assert "a b" in text


def test_what_a_worker_can_not_do_is_told_until_it_has_started():
    process = Process.__new__(Process)
    process._problems = {}
    process._listen(["train-0\tNo room.\n", "lab\t\n"])
    assert process.problem == "No room."
    process._listen(["train-0\t\n"])
    assert process.problem == ""


@pytest.mark.alone
@pytest.mark.slow
def test_workers_that_could_not_start_are_tried_again(monkeypatch):
    """Here the first nannies fail, as where /dev/shm is read-only for a while."""
    code = """
import asyncio
from core.jobs import cluster
cluster.START_SECONDS = 0.1
class Nanny(cluster.Nanny):
    failed = set()
    async def start(self):
        if self.name not in Nanny.failed:
            Nanny.failed.add(self.name)
            raise OSError("no room")
        return await super().start()
cluster.Nanny = Nanny
cluster.dask.config.set(cluster.SETTINGS)
asyncio.run(cluster.local())
"""
    command = ["-c", code]
    popen = cluster.subprocess.Popen
    monkeypatch.setattr(
        cluster.subprocess,
        "Popen",
        lambda arguments, **more: popen([arguments[0], *command], **more),
    )
    process = Process()
    try:
        wait(lambda: "no room" in process.problem)
        wait(lambda: len(process._problems) == 2 and not process.problem, 600)
    finally:
        process.kill()
