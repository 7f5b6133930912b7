import asyncio
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from distributed import Security
from distributed.core import Server
from distributed.worker import run

from core.jobs import hosts, worker
from core.jobs.hosts import SILENT_SECONDS, TELL_SECONDS, Hosts, first_gpu
from core.measure.environment import Machine
from tests.app import samples
from tests.app.jobs.follow import wait


@pytest.fixture
def clock(monkeypatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(hosts.time, "monotonic", lambda: now[0])
    return now


def report(last_seen: float, name: str = "lab", **lanes: int) -> dict:
    return {"last_seen": last_seen, "resources": lanes, "name": name}


def test_each_lane_takes_what_its_workers_take_together(clock):
    here = Hosts()
    here.update(
        {"a": report(1, train=1), "b": report(1, train=1), "c": report(1, lab=4)}
    )
    assert here.capacity == here.answering() == {"train": 2, "lab": 4}
    assert here.seconds_without("train") == 0
    clock[0] += 1
    here.update({"c": report(2, lab=4)})
    clock[0] += 2
    assert here.answering() == {"lab": 4}
    assert here.seconds_without("train") == 3


def test_a_stopped_server_of_forks_is_known_while_its_worker_answers(clock):
    here, lab = Hosts(), report(1, lab=4)
    here.update({"a": lab})
    assert here.forks == ""
    here.update({"a": lab | {"metrics": {"forks": "stopped"}}})
    assert here.forks == "stopped"
    clock[0] += SILENT_SECONDS
    assert here.forks == "", "the worker itself is what is missing"


def test_silent_worker_counts_as_gone(clock):
    """The scheduler may list it for long; clocks of other machines do not matter."""
    here = Hosts()
    for second in range(int(SILENT_SECONDS) + 2):
        here.update({"a": report(-50, train=1), "b": report(9e9 + second, lab=4)})
        clock[0] += 1
    assert here.answering() == {"lab": 4}
    assert here.capacity == {"train": 1, "lab": 4}, "jobs may still wait for it"
    clock[0] += SILENT_SECONDS
    assert here.answering() is None, "the scheduler is silent"
    here.update({"a": report(-49, train=1)})
    assert here.answering() == {"train": 1}


def test_pages_tell_who_is_silent_for_long_and_nobody_was_while_the_app_slept(clock):
    here = Hosts()
    for word in range(int(TELL_SECONDS)):
        assert not here.is_silent("train-0")
        assert not here.all_silent("train")
        here.update({"a": report(1, "train-0", train=1), "b": report(word, lab=4)})
        clock[0] += 1
    assert here.is_silent("train-0")
    assert here.all_silent("train")
    assert not here.all_silent("lab")
    assert here.silent(TELL_SECONDS) == {"a"}
    asleep = Hosts()
    for _ in range(2):
        asleep.update({"a": report(1, "train-0", train=1)})
        clock[0] += 3 * 3600
    assert asleep.silent(3 * 3600 + 1) == set()
    assert asleep.silence == 3 * 3600


def test_workers_of_one_machine_are_known_by_its_name(clock):
    here = Hosts()

    def look(word: float) -> tuple[list[tuple], dict[str, str]]:
        here.update(
            {
                "a": report(word, "a-host-train-0", train=1),
                "c": report(1, "a-host-lab", lab=4),
                "d": report(1, "b-train-0", train=1),
                "e": report(1, "b-train-1", train=1),
            }
        )
        return [tuple(host)[:4] for host in here()], here.workers_to_ask()

    machines, workers_to_ask = look(1)
    assert machines == [("a-host", "c", 1, True), ("b", "e", 2, True)]
    assert workers_to_ask == {"a-host-lab": "c", "b-train-0": "d", "b-train-1": "e"}
    assert [first_gpu(name) for name in workers_to_ask] == [0, 0, 1]
    for word in range(int(SILENT_SECONDS) + 1):
        clock[0] += 1
        look(2 + word)
    silent = [("a-host", "a", 1, True), ("b", "e", 2, False)]
    assert look(99) == (silent, {"a-host-train-0": "a"})


def test_an_app_with_workers_of_its_own_has_one_machine():
    here = Hosts()
    here.update({"a": report(1, "train-0", train=1), "b": report(1, "lab", lab=4)})
    assert [tuple(host)[:3] for host in here()] == [("", "b", 1)]


MACHINES = {"a": "one-lab", "b": "two-lab"}


@pytest.fixture
def hosts_answering(monkeypatch) -> Callable[..., Hosts]:
    def hosts_answering_with(answer: Callable[[str], Machine]) -> Hosts:
        async def describe(address: str, question: str, keys: Security) -> Machine:
            assert question == "core.devices:describe"
            assert keys is here.security
            return answer(address)

        monkeypatch.setattr(hosts, "_answer", describe)
        here = Hosts()
        here.update({k: report(1, name, lab=4) for k, name in MACHINES.items()})
        return here

    return hosts_answering_with


def test_a_machine_that_does_not_answer_holds_up_no_page(hosts_answering):
    addresses, may_answer = [], threading.Event()

    def ask(address: str) -> Machine:
        addresses.append(address)
        assert address == "a" or may_answer.wait(60)
        return samples.machine("CUDA" if address == "b" else "CPU")

    here = hosts_answering(ask)
    wait(lambda: here()[0].machine is not None)
    assert here()[1].machine is None
    may_answer.set()
    wait(lambda: here()[1].machine is not None)
    assert [host.machine.devices[0].backend for host in here()] == ["CPU", "CUDA"]
    assert sorted(addresses) == ["a", "b"]


def test_a_machine_is_asked_anew_by_its_next_worker(hosts_answering):
    addresses = []

    def ask(address: str) -> Machine:
        addresses.append(address)
        if len(addresses) < 3:
            raise OSError("gone")
        return samples.machine("CPU")

    here = hosts_answering(ask)
    wait(lambda: all(host.machine for host in here()))
    here.update({"a": report(2, "one-lab", lab=4), "c": report(2, "two-lab", lab=4)})
    assert here()[1].machine is None
    wait(lambda: here()[1].machine is not None)
    assert addresses[-1] == "c"


@contextmanager
def served() -> Iterator[str]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def begin() -> Server:
        server = Server({})
        server.handlers["run"] = lambda **more: run(server, None, **more)
        await server.listen("tcp://127.0.0.1:0")
        return server

    def on_loop(work) -> Server:
        return asyncio.run_coroutine_threadsafe(work, loop).result(60)

    server = on_loop(begin())
    yield server.address
    on_loop(server.close())
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def test_who_does_not_answer_in_time_is_left_out():
    here = Hosts()
    with served() as address, socket.create_server(("127.0.0.1", 0)) as silent:
        deaf = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        here.workers_to_ask = lambda: {
            **{"one-lab": address, "two-train-0": deaf, "two-train-1": deaf},
            "gone-lab": "tcp://127.0.0.1:1",
        }
        worker.answer("os:getpid", ())  # a worker has loaded torch
        assert here.answers("os:getpid", 3) == {"one-lab": os.getpid()}
        assert here.answers("os:no_such_thing", 0.5) == {}
