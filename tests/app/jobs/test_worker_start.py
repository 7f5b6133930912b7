"""Workers that can't start say why, and are tried again. Lost ones are replaced."""

import multiprocessing
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.jobs import cluster
from core.jobs.cluster import (
    LOAD_SECONDS,
    LOOK_SECONDS,
    LOST_SECONDS,
    Process,
    no_start,
    words,
)
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


class Look:
    """Stands in for asyncio.sleep: who drives the coroutine gets to the next look."""

    def __init__(self, _: float) -> None:
        pass

    def __await__(self) -> Iterator[None]:
        yield


SPELLS = st.tuples(
    st.sampled_from(("ends", "starts", "is known", "is lost")),
    st.sampled_from((1, 20, int(LOST_SECONDS) + 3, int(LOAD_SECONDS) + 3)),
)


@given(st.lists(SPELLS, max_size=8))
@example([("starts", 1), ("is known", 1), ("is lost", 20), ("is known", 1)])
def test_a_worker_is_killed_if_it_lives_and_the_scheduler_has_long_lacked_it(spells):
    now, lacked, patience = 0.0, 0.0, LOAD_SECONDS
    killed: list[int] = []
    told = [""]
    nanny = SimpleNamespace(name="lab", pid=None)
    other = SimpleNamespace(pid=-1)
    scheduler = SimpleNamespace(workers={"other": other})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cluster, "asyncio", SimpleNamespace(sleep=Look))
        patch.setattr(cluster, "time", SimpleNamespace(monotonic=lambda: now))
        patch.setattr(cluster, "hung", SimpleNamespace(kill=killed.append))
        watch = cluster.replace_lost(scheduler, nanny, told.append)
        watch.send(None)
        for number, (event, looks) in enumerate(spells, 1):
            if event in ("ends", "starts"):
                nanny.pid = number if event == "starts" else None
                lacked, patience = 0.0, LOAD_SECONDS
            is_known = event == "is known" and nanny.pid is not None
            mine = {"mine": SimpleNamespace(pid=nanny.pid)} if is_known else {}
            scheduler.workers = {"other": other, **mine}
            for _ in range(looks):
                now, lacked = now + LOOK_SECONDS, lacked + LOOK_SECONDS
                watch.send(None)
            if is_known:
                lacked, patience = 0.0, LOST_SECONDS
                assert told[-1] == ""
            elif nanny.pid and patience == LOST_SECONDS:
                assert told[-1] == words("workers.silent_scheduler")
            if nanny.pid is None or lacked < patience:
                assert killed == []
            elif lacked > patience + 2:
                assert set(killed) == {nanny.pid}
            if killed:
                killed.clear()
                nanny.pid = None
        watch.close()


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
