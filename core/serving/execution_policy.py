"""Whether visitors' code may run, which depends on RUN_CODE and on who has access."""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, Literal

import psutil
import streamlit as st

from core.serving.request_source import is_direct
from to_device.errors import ExplainedError

LOOK_AGAIN_SECONDS = 60.0  # how long an answer about this machine stays in the cache
NOT_OWN = (
    "Other people can reach this server, and it is not set up to run visitors' code."
)
SWITCHED_OFF = "The person who runs this server has turned off running visitors' code."


@dataclass(frozen=True)
class Mode:
    """How a visitor's code is run; for "off", `why` is a sentence for the visitor."""

    # "here" is without confinement, "confined" is in core.jobs.confined_code.
    kind: Literal["here", "confined", "off"]
    why: str = ""


def mode(ask: Callable[..., Any]) -> Mode:
    """The mode for the visitor whose page is drawn; `ask` is Engine.ask.

    "here" means that the app runs on the visitor's own machine: nobody else can reach
    the app, and no proxy forwarded this request.
    """
    wish = os.environ.get("RUN_CODE", "")
    if wish == "off":
        return Mode("off", SWITCHED_OFF)
    if wish not in ("", "confined"):
        return Mode("off", f"RUN_CODE must be confined or off, not {wish!r}.")
    if wish:
        try:
            why = _problem(ask)
        except ExplainedError as error:  # there are no workers now
            return Mode("off", str(error))
        return Mode("off", why) if why else Mode("confined")
    if sys.platform == "win32":
        why = "On Windows, code runs only in WSL, so start the app in WSL."
        return Mode("off", why)
    is_own = is_for_this_machine() and is_direct(st.context.headers)
    return Mode("here") if is_own else Mode("off", NOT_OWN)


@st.cache_data(ttl=LOOK_AGAIN_SECONDS, show_spinner=False)
def _problem(_ask: Callable[..., Any]) -> str:
    return str(_ask("core.jobs.confined_code:problem", seconds=60.0))


@st.cache_data(ttl=LOOK_AGAIN_SECONDS, show_spinner=False)
def is_for_this_machine() -> bool:
    """Whether only programs on this machine can reach the app and its workers."""
    sockets = psutil.Process().net_connections("tcp")
    ports = [s.laddr.ip for s in sockets if s.status == psutil.CONN_LISTEN]
    is_own = ports != [] and all(ip_address(ip).is_loopback for ip in ports)
    return is_own and "DASK_SCHEDULER_ADDRESS" not in os.environ
