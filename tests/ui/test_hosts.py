from dataclasses import replace
from types import SimpleNamespace

import pytest
from streamlit.testing.v1 import AppTest

from core.jobs.hosts import Host
from core.ui import hosts
from tests import samples

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


def table() -> AppTest:
    def page() -> None:
        from core.ui import hosts

        hosts.table()

    return AppTest.from_function(page).run()


def test_one_machine_is_not_spoken_of(there):
    there.append(ONE)
    assert hosts.names() == ""
    assert not table().markdown


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


def test_several_machines_are_all_told(there):
    there.extend((ONE, NEW, SILENT))
    assert hosts.names() == "3 machines: `one`, `new_1`, `silent`"
    assert table().markdown[0].value.splitlines()[2:] == [
        "| `one` | A CUDA, A CPU | unknown, 8 GB | 2 |",
        "| `new_1` | not known yet |  | 1 |",
        "| `silent` | not responding |  | 1 |",
    ]
