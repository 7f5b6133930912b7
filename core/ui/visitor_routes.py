"""What changes a visitor's cookie: a form that posts, and a redirect to a page.

A websocket can't set cookies. What came of it is a sentence on the page that follows.
"""

import asyncio
import time
from collections import Counter, deque
from typing import Literal, NamedTuple
from urllib.parse import parse_qs, urlsplit

import streamlit as st
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from core.store.codec import StoreError
from core.ui import measured, runs, visitor
from core.ui.server import engine, room, store

CODE, DELETE = "visitor/code", "visitor/delete"  # relative to a page's address
LONGEST = 1000  # bytes of a form; a code has 23
MOST_SENTENCES = 1000  # that wait for their page
NOT_FROM_HERE = (
    "This form was not sent from a page of this app. Open the app, try there."
)


class Said(NamedTuple):
    """A sentence on the next page."""

    kind: Literal["success", "warning"]
    text: str


BACK = Said("success", "Welcome back. What you did elsewhere with this code is here.")
WRONG = Said(
    "warning",
    "Nobody here has that code. Check it against the one in your other browser; "
    "capitals and spaces do not matter.",
)
DELETED = Said(
    "success",
    "Your data is deleted: runs, curves, models and measurements. Links to your runs "
    "no longer work, and this browser is a new visitor.",
)
_said: dict[str, Said] = {}  # by visitor


def what_was_said(to: str) -> Said | None:
    """The sentence that waits for a visitor; it is told once."""
    return _said.pop(to, None)


def say(to: str, sentence: Said) -> None:
    """Have the visitor's next page tell it."""
    _said[to] = sentence
    if len(_said) > MOST_SENTENCES:
        del _said[next(iter(_said))]


class Failures:
    """Wrong codes of the last minutes, and how long they make the next try wait.

    Nobody is refused: who guesses waits, most of all at the address it comes from.
    """

    LAST_SECONDS = 600.0
    OWN_SECONDS, MOST_OWN_SECONDS = 0.1, 5.0  # a wrong code from the same address
    ALL_SECONDS, MOST_ALL_SECONDS = 0.001, 1.0  # one from anywhere

    def __init__(self) -> None:
        self._recent: deque[tuple[float, str]] = deque()  # when, and where from
        self._by_address: Counter[str] = Counter()

    def add(self, address: str) -> None:
        """A wrong code came from there."""
        self._recent.append((time.monotonic(), address))
        self._by_address[address] += 1
        self._forget()

    def delay(self, address: str) -> float:
        """Seconds that a try from there has to wait."""
        self._forget()
        own = self._by_address[address] * self.OWN_SECONDS
        everywhere = len(self._recent) * self.ALL_SECONDS
        return min(own, self.MOST_OWN_SECONDS) + min(everywhere, self.MOST_ALL_SECONDS)

    def _forget(self) -> None:
        now = time.monotonic()
        while self._recent and (
            now - self._recent[0][0] > self.LAST_SECONDS or len(self._recent) > 10_000
        ):
            _, address = self._recent.popleft()
            self._by_address[address] -= 1
        self._by_address += Counter()  # without those at 0


failures = Failures()


async def come_back(request: Request) -> Response:
    """Be the visitor whose code the form brings; else go on as before, and be told."""
    form = await posted(request)
    if form is None:
        return PlainTextResponse(NOT_FROM_HERE, 403)
    current = visitor.read(request.cookies.get(visitor.COOKIE, ""))
    address = request.client.host if request.client else ""
    await asyncio.sleep(failures.delay(address))
    try:
        code = form.get("code", [""])[0]
        found = await run_in_threadpool(store().visitors.by_code, code)
    except StoreError as error:
        return to_page(current, Said("warning", str(error)))
    if found is None:
        failures.add(address)
        return to_page(current, WRONG)
    answer = to_page(found.id, BACK)
    visitor.give(answer, found.id, request.scope)
    return answer


async def delete(request: Request) -> Response:
    """Delete all that is kept of this browser's visitor, who is a new one then."""
    if await posted(request) is None:
        return PlainTextResponse(NOT_FROM_HERE, 403)
    current = visitor.read(request.cookies.get(visitor.COOKIE, ""))
    if not current:
        return to_page(current, DELETED)
    try:
        await run_in_threadpool(delete_all_of, current)
    except StoreError as error:
        return to_page(current, Said("warning", f"Not all is deleted yet. {error}"))
    visitor.retire(current)
    answer = to_page(fresh := visitor.new(), DELETED)
    visitor.give(answer, fresh, request.scope)
    return answer


def delete_all_of(who: str) -> None:
    """End what goes on, then delete: in the database and in memory.

    Raises StoreError where the database has to come back first.
    """
    engine().forget(who)
    room().forget(who)
    store().visitors.delete(who)
    engine().forget(who)  # what somebody has looked at meanwhile
    runs.forget()
    measured.forget()
    st.cache_data.clear()  # what pages asked of their models


async def posted(request: Request) -> dict[str, list[str]] | None:
    """What a page of this app has posted; None where another site's page has.

    Browsers say whose page it was, and no page can make them say another's.
    """
    host = request.headers.get("host")
    origin = urlsplit(request.headers.get("origin", "")).netloc
    site = request.headers.get("sec-fetch-site")  # a proxy may have changed the host
    if site != "same-origin" and (not origin or origin != host):
        return None
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > LONGEST:
            return {}
    return parse_qs(body.decode("ascii", "ignore"))


def to_page(to: str, sentence: Said, page: str = "Runs") -> Response:
    """The page where the form is, which tells the visitor."""
    if to:
        say(to, sentence)
    return RedirectResponse(f"../{page}", 303)


ROUTES = [
    Route(f"/{CODE}", come_back, methods=["POST"]),
    Route(f"/{DELETE}", delete, methods=["POST"]),
]
