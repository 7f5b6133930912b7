"""Whether visitors' code may run, which depends on RUN_CODE and on who has access."""

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from typing import Any, Literal
from urllib.parse import urlsplit

import psutil
import streamlit as st
from starlette.requests import HTTPConnection

from to_device.errors import ExplainedError

LOOK_AGAIN_SECONDS = 60.0  # how long an answer about this machine stays in the cache
# A proxy adds one of these headers, or X-Forwarded-..., to a request.
HANDED_ON = ("forwarded", "via", "x-real-ip")
NOT_OWN = (
    "Other people can reach this server, and it is not set up to run visitors' code."
)
SWITCHED_OFF = "The person who runs this server turned this feature off."


@dataclass(frozen=True)
class Mode:
    """How a visitor's code is run; for "off", `why` is a sentence for the visitor."""

    # "here" is without confinement, "confined" is in core.jobs.code_sandbox.
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
    return str(_ask("core.jobs.code_sandbox:problem", seconds=60.0))


@st.cache_data(ttl=LOOK_AGAIN_SECONDS, show_spinner=False)
def is_for_this_machine() -> bool:
    """Whether only programs on this machine can reach the app and its workers."""
    sockets = psutil.Process().net_connections("tcp")
    ports = [s.laddr.ip for s in sockets if s.status == psutil.CONN_LISTEN]
    is_own = ports != [] and all(ip_address(ip).is_loopback for ip in ports)
    return is_own and "DASK_SCHEDULER_ADDRESS" not in os.environ


def is_direct(headers: Mapping[str, str]) -> bool:
    """Whether a request came from a browser on this machine, and through no proxy.

    The Host must name this machine. Otherwise, a page of another site could reach the
    app by letting that site's name stand for 127.0.0.1 (DNS rebinding). The Origin must
    name the same host and port, since other programs on this machine serve pages, too.
    """
    if is_forwarded(headers):
        return False
    host = headers.get("Host", "")
    with suppress(ValueError):
        sender = urlsplit(headers.get("Origin", f"//{host}")).netloc
        return is_loopback(f"//{host}") and sender.lower() == host.lower()
    return False


def is_forwarded(headers: Mapping[str, str]) -> bool:
    """Whether a request came through a proxy."""
    names = {name.lower() for name in headers}
    is_marked = any(name.startswith("x-forwarded") for name in names)
    return is_marked or not names.isdisjoint(HANDED_ON)


def is_private(connection: HTTPConnection) -> bool:
    """Whether a program on this machine sent a request, or one beside the proxy.

    FORWARDED_ALLOW_IPS may name the proxy's network, from which Prometheus asks. People
    come through the proxy.
    """
    headers, client = connection.headers, connection.client
    with suppress(ValueError):
        sender = ip_address(client.host if client else "")
        if sender.is_loopback:
            return is_direct(headers)
        trusted = os.environ.get("FORWARDED_ALLOW_IPS", "").split(",")
        networks = [ip_network(text.strip()) for text in trusted if "/" in text]
        return not is_forwarded(headers) and any(sender in net for net in networks)
    return False


def is_loopback(url: str) -> bool:
    """Whether the URL's host is this machine: localhost, or a loopback address."""
    with suppress(ValueError):
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ip_address(host).is_loopback
    return False
