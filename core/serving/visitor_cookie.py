"""The visitor's cookie: an id that this server has signed, and nothing else.

The response with a page's HTML sets the cookie, and the browser sends the cookie as it
opens the page's websocket. So a cookie that is set later counts only after a reload. A
cookie that is forged, damaged, or old, or whose id was deleted, counts as no cookie.
"""

import logging
import os
import re
import secrets
import time
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Literal

import streamlit as st
from filelock import FileLock
from itsdangerous import BadSignature, TimestampSigner
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from core.folders import DATA
from to_device.errors import ExplainedError

logger = logging.getLogger(__name__)

COOKIE = "visitor"
DAY_SECONDS = 86_400
LASTS_SECONDS = 180 * DAY_SECONDS  # after the last visit
KEY_FILE = DATA / "cookie.key"
KEY_LENGTH = 32  # characters, at least
MOST = 10_000  # deleted ids in memory, at most
# A proxy that removes the app's path from addresses may name this path in one of these
# headers, as Traefik and Jupyter do.
STRIPPED = ("x-forwarded-prefix", "x-forwarded-context")
PATH = re.compile(r"[\w./@%~+-]*")
# Of all apps of the host. Browsers keep 180 for a host, at most.
MOST_COOKIES = 200

_deleted: dict[str, None] = {}  # ids, in the order they were deleted


def new() -> str:
    return secrets.token_hex(16)


@cache
def signer() -> TimestampSigner:
    """The signer of cookies. Raises ExplainedError if COOKIE_SECRET is too short."""
    key = os.environ.get("COOKIE_SECRET", "")
    if key and len(key) < KEY_LENGTH:
        raise ExplainedError(
            f"COOKIE_SECRET has {len(key)} characters, but needs at least "
            f"{KEY_LENGTH}. If you unset COOKIE_SECRET, the app makes its own key."
        )
    try:
        key = key or key_in(KEY_FILE)
    except OSError as error:
        logger.warning("after a restart, all visitors will count as new: %s", error)
        key = new()
    return TimestampSigner(key, salt=COOKIE, digest_method=sha256)


def key_in(file: Path) -> str:
    """The key in the file; makes a new key if there is no valid one. Raises OSError.

    Servers that start at the same time agree on the key. Only the user who runs them
    may read the file.
    """

    def read() -> str:
        text = file.read_text("ascii", "ignore").strip() if file.exists() else ""
        return text if len(text) >= KEY_LENGTH else ""

    if key := read():
        return key
    file.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{file}.lock", mode=0o600):
        if not read():
            aside = file.with_name(f"{file.name}.{os.getpid()}")
            aside.unlink(missing_ok=True)
            aside.touch(0o600, exist_ok=False)
            aside.write_text(secrets.token_hex(KEY_LENGTH))
            aside.replace(file)
    return read()


def visitor(connection: HTTPConnection) -> str:
    return read(connection.cookies.get(COOKIE, ""))


def read(cookie: str) -> str:
    """The id in a cookie; "" for an invalid cookie."""
    return read_dated(cookie)[0]


def age(cookie: str) -> float:
    """How many seconds ago a cookie was given or renewed; 0 for an invalid cookie."""
    return read_dated(cookie)[1]


def read_dated(cookie: str) -> tuple[str, float]:
    """The id in a cookie and its age: see `read` and `age`."""
    try:
        value, signed = signer().unsign(cookie, return_timestamp=True)
    except BadSignature:
        return "", 0.0
    visitor, age = value.decode(), time.time() - signed.timestamp()
    is_valid = age < LASTS_SECONDS and visitor not in _deleted
    return (visitor, age) if is_valid else ("", 0.0)


def give(response: Response, visitor: str, scope: Scope) -> None:
    set_cookie(response, COOKIE, signer().sign(visitor).decode(), LASTS_SECONDS, scope)


def set_cookie(
    response: Response, name: str, value: str, seconds: int, scope: Scope
) -> None:
    """Set a cookie for this app's path, even if another site's page embeds the app."""
    headers, is_secure = Headers(scope=scope), scope["scheme"] == "https"

    def add(samesite: Literal["lax", "none"]) -> None:
        response.set_cookie(
            name,
            value,
            max_age=seconds,
            path=mounted_at(headers),
            httponly=True,
            samesite=samesite,
            secure=is_secure,
        )

    add("lax")
    if is_secure and headers.get("sec-fetch-dest") == "iframe":
        # Inside another site's page, browsers send only a partitioned cookie.
        add("none")
        header, text = response.raw_headers.pop()
        # Starlette can't write this attribute before Python 3.14.
        response.raw_headers.append((header, text + b"; Partitioned"))


def mounted_at(headers: Headers) -> str:
    """The app's path, as browsers see it."""
    stripped = next(filter(None, map(headers.get, STRIPPED)), "")
    path = (stripped or st.get_option("server.baseUrlPath")).strip("/")
    return f"/{path}" if PATH.fullmatch(path) else "/"


def retire(visitor: str) -> None:
    """Make the id invalid, even in tabs that are still open."""
    _deleted[visitor] = None
    if len(_deleted) > MOST:
        del _deleted[next(iter(_deleted))]


def reinstate(visitor: str) -> None:
    """Make a retired id valid again: the deletion of its data has failed."""
    _deleted.pop(visitor, None)


def leave_costly_out(scope: Scope) -> None:
    """Leave out of a request's cookies those that take long to read.

    Python before 3.12.6 takes 0.3 s for 16 kB of backslashes (CVE-2024-7592), and each
    tiny cookie takes as long as a large one. The app's own cookies have no backslashes,
    and other apps of the host may have some, so the request isn't refused.
    """
    headers: list[tuple[bytes, bytes]] = scope["headers"]
    sent = b";".join(value for name, value in headers if name == b"cookie")
    if b"\\" not in sent and sent.count(b";") < MOST_COOKIES:
        return
    plain = [cookie for cookie in sent.split(b";") if b"\\" not in cookie]
    others = [header for header in headers if header[0] != b"cookie"]
    scope["headers"] = [*others, (b"cookie", b";".join(plain[:MOST_COOKIES]))]


class VisitorCookie:
    """ASGI middleware: the response with a page sets the cookie, even a 304 (cached).

    A cookie that is older than a day is renewed. The app gets no cookies that take long
    to read.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if "headers" in scope:  # unless it is the server's start
            leave_costly_out(scope)
        if scope["type"] != "http" or scope["method"] != "GET":
            return await self.app(scope, receive, send)
        visitor, age = read_dated(HTTPConnection(scope).cookies.get(COOKIE, ""))
        is_current = bool(visitor) and age <= DAY_SECONDS
        is_file = "." in scope["path"].rpartition("/")[2]

        async def with_cookie(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                is_html = headers.get("content-type", "").startswith("text/html")
                if is_html or message["status"] == 304:
                    answer = Response()
                    give(answer, visitor or new(), scope)
                    for cookie in answer.headers.getlist("set-cookie"):
                        headers.append("set-cookie", cookie)
                    # A shared cache must not give one person's cookie to others.
                    headers["cache-control"] = "private, no-cache"
            await send(message)

        await self.app(scope, receive, send if is_current or is_file else with_cookie)
