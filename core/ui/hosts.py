"""The machines that have workers, where there is more than one."""

from dataclasses import replace

import streamlit as st

from core.errors import quoted
from core.jobs.roster import Host
from core.measure.environment import Machine
from core.ui import format
from core.ui.server import engine


def several() -> list[Host]:
    """All of them; none where there is only one, which pages are about anyway."""
    found = engine().hosts()
    return found if len(found) > 1 else []


def options(chosen: str) -> list[str]:
    """The names to choose a machine that trains from, and what is chosen; "" is any.

    Nothing where there is only one machine, and none is chosen.
    """
    known = ["", *(each.name for each in several() if each.trains), chosen]
    return list(dict.fromkeys(known)) if any(known) else []


def machine(chosen: str) -> Machine | None:
    """What a machine says of itself; where none is chosen, what the lab's one says.

    That with the devices that all have, for a job that any may do. None while there is
    no answer.
    """
    found = several()
    if chosen:
        return next((each.machine for each in found if each.name == chosen), None)
    if (here := engine().machine()) is None:
        return None
    known = [{d.device for d in h.machine.devices} for h in found if h.machine]
    common = tuple(d for d in here.devices if all(d.device in each for each in known))
    return replace(here, devices=common or here.devices)


def names() -> str:
    """In a line: "2 machines: `one`, `two`"; empty where there is only one."""
    found = several()
    listed = ", ".join(quoted(each.name) for each in found)
    return f"{len(found)} machines: {listed}" if found else ""


def table() -> None:
    """What each of them has; nothing where there is only one."""
    if not (found := several()):
        return
    rows = (
        f"| {quoted(each.name)} | {_devices(each)} | {_memory(each)} | {each.trains} |"
        for each in found
    )
    # Markdown fits a phone, where a dataframe is a window to scroll in.
    st.markdown(
        "| Machine | Devices | Memory | Training workers |\n"
        "| --- | --- | --- | --- |\n" + "\n".join(rows)
    )


def _devices(host: Host) -> str:
    if not host.answers:
        return "doesn't answer"
    if host.machine is None:
        return "has not said yet"
    return ", ".join(each.device_name for each in host.machine.devices)


def _memory(host: Host) -> str:
    """Of each device, in their order."""
    if host.machine is None or not host.answers:
        return ""
    return ", ".join(format.size(each.total_bytes) for each in host.machine.devices)
