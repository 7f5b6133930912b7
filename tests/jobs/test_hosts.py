"""core.jobs.hosts: what machines say of themselves, without anybody waiting for it."""

import asyncio
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from distributed.core import Server
from distributed.worker import run

from core.jobs import worker
from core.jobs.hosts import Hosts
from core.jobs.roster import Host, Roster
from tests import samples
from tests.jobs.follow import wait

FIRST, SECOND = Host("one", "a", 1, True), Host("two", "b", 2, True)


class Known(Roster):
    """A roster that says what it is told to."""

    def __init__(self, *found: Host) -> None:
        super().__init__()
        self.found = list(found)

    def hosts(self) -> list[Host]:
        return self.found


def test_a_machine_that_does_not_answer_holds_nobody_up():
    """The others are described; it is, once it answers, and is asked only once."""
    asked, may_answer = [], threading.Event()

    def ask(address: str):
        asked.append(address)
        assert address == "a" or may_answer.wait(10)
        return samples.machine("CUDA" if address == "b" else "CPU")

    hosts = Hosts(Known(FIRST, SECOND), ask)
    wait(lambda: hosts()[0].machine is not None)
    assert hosts()[1].machine is None
    may_answer.set()
    wait(lambda: hosts()[1].machine is not None)
    assert [each.machine.devices[0].backend for each in hosts()] == ["CPU", "CUDA"]
    assert sorted(asked) == ["a", "b"]


def test_a_machine_is_asked_anew_by_its_next_worker():
    """Where asking failed, and where the worker is another: it may have changed."""
    asked = []

    def ask(address: str):
        asked.append(address)
        if len(asked) < 3:
            raise OSError("gone")
        return samples.machine("CPU")

    roster = Known(FIRST, SECOND)
    hosts = Hosts(roster, ask)
    wait(lambda: all(each.machine for each in hosts()))
    roster.found = [FIRST, SECOND._replace(speaker="c")]
    assert hosts()[1].machine is None
    wait(lambda: hosts()[1].machine is not None)
    assert asked[-1] == "c"


def test_a_machine_alone_is_not_asked():
    """Pages know of it what they always knew."""
    assert Hosts(Known(FIRST), lambda _: 1 / 0)() == [FIRST]


@contextmanager
def served() -> Iterator[str]:
    """The address of what answers as a worker does."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def begin() -> Server:
        server = Server({})
        server.handlers["run"] = lambda **more: run(server, None, **more)
        await server.listen("tcp://127.0.0.1:0")
        return server

    def on_loop(work) -> Server:
        return asyncio.run_coroutine_threadsafe(work, loop).result(20)

    server = on_loop(begin())
    yield server.address
    on_loop(server.close())
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def test_who_does_not_answer_in_time_is_left_out():
    """All are asked at once, and one that is silent costs no more than that time."""
    roster = Known()
    hosts = Hosts(roster, lambda _: 1 / 0)
    with served() as address, socket.create_server(("127.0.0.1", 0)) as silent:
        deaf = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        roster.speakers = lambda: {
            **{"one-lab": address, "two-train-0": deaf, "two-train-1": deaf},
            "gone-lab": "tcp://127.0.0.1:1",
        }
        worker.answer("os:getpid", ())  # a worker has loaded torch
        begun = time.monotonic()
        assert hosts.answers("os:getpid", 0.5) == {"one-lab": os.getpid()}
        assert time.monotonic() < begun + 2
        assert hosts.answers("os:no_such_thing", 0.5) == {}
