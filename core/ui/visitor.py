"""Who a browser is: an id in a cookie that this server has signed.

The cookie comes with a page, and the page's websocket brings it back: what is set later
is seen after a reload only. No name and no address are looked at. An id that nobody
signed, or whose owner has deleted their data, is nobody's.
"""

import logging
import os
import secrets
import time
from functools import cache, lru_cache
from hashlib import sha256
from pathlib import Path

from filelock import FileLock
from itsdangerous import BadSignature, TimestampSigner
from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from core.errors import ExplainedError
from core.store.database import ROOT

logger = logging.getLogger(__name__)

COOKIE = "visitor"
DAY_SECONDS = 86_400
LASTS_SECONDS = 180 * DAY_SECONDS  # from the newest page on
KEY_FILE = ROOT / "data" / "cookie.key"
KEY_LENGTH = 32  # characters, at least
MOST = 10_000  # ids that are known to be deleted: the newest

_deleted: dict[str, None] = {}  # ids, in the order they were deleted


def new() -> str:
    """The id of somebody who was never here."""
    return secrets.token_hex(16)


@cache
def signer() -> TimestampSigner:
    """Signs cookies. Raises ExplainedError for a COOKIE_SECRET that is too short."""
    key = os.environ.get("COOKIE_SECRET", "")
    if key and len(key) < KEY_LENGTH:
        raise ExplainedError(
            f"COOKIE_SECRET has {len(key)} characters, and has to have {KEY_LENGTH} at "
            "least. Leave it out, and the app makes a key of its own."
        )
    try:
        key = key or kept_key(KEY_FILE)
    except OSError as error:
        logger.warning("after a restart all visitors will be new: %s", error)
        key = new()
    return TimestampSigner(key, salt=COOKIE, digest_method=sha256)


def kept_key(file: Path) -> str:
    """The key in the file, which is made where it is missing; OSError: it can't be.

    Several servers that start at once have the same key.
    """
    if not _read(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{file}.lock"):
            if not _read(file):
                aside = file.with_name(f"{file.name}.{os.getpid()}")
                aside.unlink(missing_ok=True)
                flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY
                with os.fdopen(os.open(aside, flags, 0o600), "w") as opened:
                    opened.write(secrets.token_hex(KEY_LENGTH))
                aside.replace(file)
    return _read(file)


def _read(file: Path) -> str:
    """The key; empty where there is none, or what was left of one."""
    found = file.read_text("ascii", "ignore").strip() if file.exists() else ""
    return found if len(found) >= KEY_LENGTH else ""


def read(cookie: str) -> str:
    """The id in a cookie; empty where it is forged, damaged, too old or deleted."""
    return _read_dated(cookie)[0]


def _read_dated(cookie: str) -> tuple[str, float]:
    """The id, and for how many seconds the cookie has been there."""
    try:
        found, signed = _unsigned(signer(), cookie)
    except BadSignature:
        return "", 0.0
    age = time.time() - signed
    known = age < LASTS_SECONDS and found not in _deleted
    return (found, age) if known else ("", 0.0)


@lru_cache(maxsize=1024)  # a page asks dozens of times whose it is
def _unsigned(signer: TimestampSigner, cookie: str) -> tuple[str, float]:
    """The id, and when it was signed; BadSignature, which is not remembered."""
    found, signed = signer.unsign(cookie, return_timestamp=True)
    return found.decode(), signed.timestamp()


def give(response: Response, visitor: str, scope: Scope) -> None:
    """Have the browser keep this id."""
    response.set_cookie(
        COOKIE,
        signer().sign(visitor).decode(),
        max_age=LASTS_SECONDS,
        httponly=True,
        samesite="lax",
        secure=scope["scheme"] == "https",
    )


def retire(visitor: str) -> None:
    """The id is nobody's from now on, also in tabs that are still open."""
    _deleted[visitor] = None
    if len(_deleted) > MOST:
        del _deleted[next(iter(_deleted))]


class VisitorCookie:
    """ASGI middleware: a page brings a cookie to whoever has none, or an old one."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET":
            return await self.app(scope, receive, send)
        visitor, age = _read_dated(HTTPConnection(scope).cookies.get(COOKIE, ""))

        async def with_cookie(message: Message) -> None:
            if _is_page(scope, message) and (not visitor or age > DAY_SECONDS):
                given = Response()
                give(given, visitor or new(), scope)
                headers = MutableHeaders(scope=message)
                headers.append("set-cookie", given.headers["set-cookie"])
                # A cache that several people share must not hand it to others.
                headers["cache-control"] = "private, no-cache"
            await send(message)

        await self.app(scope, receive, with_cookie)


def _is_page(scope: Scope, message: Message) -> bool:
    """Whether an answer is a page, or says that the browser's copy is still good."""
    name = scope["path"].rpartition("/")[2]
    if message["type"] != "http.response.start" or "." in name:
        return False
    kind = MutableHeaders(scope=message).get("content-type", "")
    return kind.startswith("text/html") or message["status"] == 304
