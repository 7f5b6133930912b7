from dataclasses import replace
from types import SimpleNamespace

import pytest

from core.jobs.hosts import Host
from core.ui import hosts
from tests.app import samples

CPU = replace(samples.machine("CPU").devices[0], total_bytes=8_000_000_000)
BOTH = samples.machine("CUDA", "CPU").devices
ONE = Host("one", "a", 2, True, replace(samples.machine(), devices=(*BOTH[:1], CPU)))
NEW = Host("new_1", "b", 1, True)
SILENT = Host("silent", "c", 1, False, samples.machine("CPU"))


@pytest.fixture
def there(monkeypatch) -> list[Host]:
    all_hosts: list[Host] = []
    engine = SimpleNamespace(hosts=lambda: all_hosts, machine=lambda: ONE.machine)
    monkeypatch.setattr(hosts, "engine", lambda: engine)
    return all_hosts


def test_there_is_a_choice_where_there_are_several(there):
    there.append(ONE)
    assert (hosts.options(""), hosts.options("gone")) == ([], ["", "gone"])
    there.extend((NEW, Host("asks_only", "d", 0, True)))
    assert hosts.options("") == hosts.options("one") == ["", "one", "new_1"]
    assert hosts.options("gone") == ["", "one", "new_1", "gone"]


def test_any_machine_has_what_all_of_them_have(there):
    there.extend((ONE, NEW))
    kinds = [device.device for device in ONE.machine.devices]
    assert kinds == ["cuda", "cpu"]
    assert hosts.machine("one") is ONE.machine
    assert (hosts.machine("new_1"), hosts.machine("gone")) == (None, None)
    assert [device.device for device in hosts.machine("").devices] == kinds
    there.append(SILENT)
    assert [device.device for device in hosts.machine("").devices] == ["cpu"]
