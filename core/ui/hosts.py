"""The machines that have workers, if there are several."""

from dataclasses import replace

import streamlit as st

from core.jobs.hosts import Host
from core.measure.environment import Machine
from core.ui import format
from core.ui.server import engine
from to_device.errors import quoted


def several() -> list[Host]:
    """All machines with workers; [] if there is only one."""
    hosts = engine().hosts()
    return hosts if len(hosts) > 1 else []


def options(chosen: str) -> list[str]:
    """The training machines to choose from, including `chosen`; "" stands for any.

    The list is empty if there is only one machine and none was chosen.
    """
    names = ["", *(host.name for host in several() if host.trains), chosen]
    return list(dict.fromkeys(names)) if any(names) else []


def machine(chosen: str) -> Machine | None:
    """The machine with the name `chosen`; None until it has described itself.

    If `chosen` is "", any machine may do the job. Then the result is this machine, with
    only the devices that all machines have.
    """
    hosts = several()
    if chosen:
        return next((host.machine for host in hosts if host.name == chosen), None)
    if (here := engine().machine()) is None:
        return None
    machines = [host.machine for host in hosts if host.machine]
    names = [{device.device for device in machine.devices} for machine in machines]
    common = tuple(d for d in here.devices if all(d.device in own for own in names))
    return replace(here, devices=common or here.devices)


def names() -> str:
    """Text such as "2 machines: `one`, `two`"; "" if there is only one."""
    hosts = several()
    listed = ", ".join(quoted(host.name) for host in hosts)
    return f"{len(hosts)} machines: {listed}" if hosts else ""


def table() -> None:
    """Draw a row for each machine; nothing if there is only one."""
    rows = []
    for host in several():
        devices, memory = "not responding", ""
        if host.answers and host.machine is None:
            devices = "not known yet"
        elif host.answers and host.machine:
            devices = ", ".join(d.device_name for d in host.machine.devices)
            memory = ", ".join(format.size(d.total_bytes) for d in host.machine.devices)
        rows.append(f"| {quoted(host.name)} | {devices} | {memory} | {host.trains} |")
    if rows:  # as Markdown, which fits a phone: a dataframe would have to be scrolled
        head = "| Machine | Devices | Memory | Training workers |"
        st.markdown("\n".join((head, "| --- | --- | --- | --- |", *rows)))
