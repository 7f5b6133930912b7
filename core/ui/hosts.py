"""The machines that have workers, where there is more than one."""

import streamlit as st

from core.errors import quoted
from core.jobs.roster import Host
from core.ui import format
from core.ui.server import engine


def several() -> list[Host]:
    """All of them; none where there is only one, which pages are about anyway."""
    found = engine().hosts()
    return found if len(found) > 1 else []


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
