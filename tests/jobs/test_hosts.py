"""core.jobs.hosts: what machines say of themselves, without anybody waiting for it."""

import threading

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
