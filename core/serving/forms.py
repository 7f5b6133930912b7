"""HTML forms. Their responses can set a cookie, which Streamlit's websocket can't.

The response to a form redirects to a page, which shows a sentence about the outcome.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import chain
from typing import Literal, NamedTuple
from urllib.parse import parse_qs, urlsplit

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response

from core.serving.recent_asks import RecentAsks
from core.serving.request_source import network

LONGEST = 1000  # limit of a form in bytes; the code that visitors log in with has 23
MOST_SENTENCES = 1000  # sentences in memory, until the visitors open their next page
BROKEN_OFF = "The form didn't arrive whole. Send it again."
OTHER_SITE = "This form was not sent from a page of this app. Open the app instead."


class Sentence(NamedTuple):
    kind: Literal["success", "warning"]
    text: str


_sentences: dict[str, Sentence] = {}  # keyed by visitor


def say(visitor: str, sentence: Sentence) -> None:
    """Keep a sentence for the visitor's next page."""
    _sentences[visitor] = sentence
    if len(_sentences) > MOST_SENTENCES:
        del _sentences[next(iter(_sentences))]


def pop_sentence(visitor: str) -> Sentence | None:
    """Return a visitor's sentence, and forget it; None if there is none."""
    return _sentences.pop(visitor, None)


class Failures:
    """Counts wrong passwords or codes; `delay` is how many seconds the next try waits.

    Nobody is refused. After a failure, tries from the same network address wait longer,
    and all other tries a little longer.
    """

    LAST_SECONDS = 600.0  # how long a failure counts
    # How much each failure adds to the delay, and the most that all of them add
    OWN_SECONDS, MOST_OWN_SECONDS = 0.1, 5.0  # failures from the same address
    ALL_SECONDS, MOST_ALL_SECONDS = 0.001, 1.0  # failures from all addresses
    MOST = 10_000  # failures in memory, at most

    def __init__(self) -> None:
        self._recent: deque[tuple[float, str]] = deque(maxlen=self.MOST)

    def add(self, address: str) -> None:
        self._recent.append((time.monotonic(), address))

    def take_back(self, address: str) -> None:
        """Forget the newest failure of an address."""
        own = [failure for failure in self._recent if failure[1] == address]
        if own:
            self._recent.remove(own[-1])

    def delay(self, address: str) -> float:
        oldest = time.monotonic() - self.LAST_SECONDS
        recent = [failure for failure in self._recent if failure[0] >= oldest]
        self._recent = deque(recent, self.MOST)
        own = sum(theirs == address for _, theirs in recent) * self.OWN_SECONDS
        everywhere = len(recent) * self.ALL_SECONDS
        return min(own, self.MOST_OWN_SECONDS) + min(everywhere, self.MOST_ALL_SECONDS)


class TooBusyError(Exception):
    """Too many requests wait for the same slow thing."""


class Turns:
    """Lets requests do something slow one at a time; addresses take turns.

    If more than `most` requests wait, TooBusyError ends one of the addresses that have
    the most: the one of the visitor who has asked most often lately, or else with the
    newest cookie, since a program can fetch any number of them, and have any number of
    addresses, and a class may share one. For one event loop.
    """

    def __init__(self, most: int) -> None:
        self._most, self._is_taken = most, False
        self._asks = RecentAsks()
        # By address: each request's visitor, cookie's age, and what it waits for
        self._waiting: dict[str, list[tuple[str, float, asyncio.Future[None]]]] = {}

    @asynccontextmanager
    async def turn(
        self, address: str, visitor: str = "", age: float = 0.0
    ) -> AsyncIterator[None]:
        """Wait for a turn; `age` is how many seconds ago the cookie was given."""
        self._asks.add(visitor)
        if self._is_taken:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.setdefault(address, []).append((visitor, age, turn))
            if sum(map(len, self._waiting.values())) > self._most:
                self._drop()
            await turn
        self._is_taken = True
        try:
            yield
        finally:
            self._pass_on()

    def _drop(self) -> None:
        longest = max(map(len, self._waiting.values()))
        fullest = [those for those in self._waiting.values() if len(those) == longest]
        # Among equals, the request that came last
        last = max(reversed([*chain(*fullest)]), key=self._rank)
        next(those for those in fullest if last in those).remove(last)
        last[2].set_exception(TooBusyError())

    def _rank(self, waiting: tuple[str, float, asyncio.Future[None]]) -> tuple:
        visitor, age, _ = waiting
        return self._asks.count(visitor), -age

    def _pass_on(self) -> None:
        self._is_taken = False
        while self._waiting:
            address = next(iter(self._waiting))
            turns = self._waiting.pop(address)
            turn = turns.pop(0)[2] if turns else None
            if turns:
                self._waiting[address] = turns  # now behind the other addresses
            if turn is not None and not turn.done():  # nobody canceled the request
                self._is_taken = True
                return turn.set_result(None)


async def posted(request: Request) -> dict[str, str]:
    """The fields of a form; {} if the form is too long.

    Raises HTTPException 403 if another site's page sent the form, and 400 if it was
    broken off. Browsers name the site in headers that its page can't change.
    """
    host, origin = request.headers.get("host"), ""
    with suppress(ValueError):  # of an address such as http://[
        origin = urlsplit(request.headers.get("origin", "")).netloc
    # Sec-Fetch-Site alone suffices: behind a proxy, host and origin may differ.
    site = request.headers.get("sec-fetch-site")
    if site != "same-origin" and (not origin or origin != host):
        raise HTTPException(403, OTHER_SITE)
    body = b""
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > LONGEST:
                return {}
    except ClientDisconnect:
        raise HTTPException(400, BROKEN_OFF) from None
    fields = parse_qs(body.decode("ascii", "ignore"))
    return {name: values[0] for name, values in fields.items()}


def sender(request: Request) -> str:
    return network(request.client.host) if request.client else ""


def to_page(visitor: str, sentence: Sentence | None, page: str) -> Response:
    if visitor and sentence:
        say(visitor, sentence)
    return RedirectResponse(f"../{page}", 303)
