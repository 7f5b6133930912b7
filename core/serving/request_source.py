"""Where a request comes from: this machine, a proxy, or another page's script."""

import os
from collections.abc import Mapping
from contextlib import suppress
from ipaddress import ip_address, ip_network
from threading import Event
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection

# A proxy adds one of these headers, or X-Forwarded-..., to a request.
HANDED_ON = ("forwarded", "via", "x-real-ip")

_others = Event()  # set once a visitor's request wasn't direct


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


def note_visit(headers: Mapping[str, str]) -> None:
    """Remember if the request that a page answers has come through a proxy."""
    if not is_direct(headers):
        _others.set()


def others_came() -> bool:
    """Whether anybody has come through a proxy since the app started."""
    return _others.is_set()


def network(address: str) -> str:
    """The network of an address, as limits for each address count: one customer's.

    With IPv6, whoever rents a machine has all addresses that begin with the same 64
    bits. What is no address stays as it is.
    """
    try:
        ip = ip_address(address)
    except ValueError:
        return address
    if ip.version == 4:
        return address
    if ip.ipv4_mapped:
        return str(ip.ipv4_mapped)
    return str(ip_network((int(ip) >> 64 << 64, 64)))


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
